//! Embeddings of a token for each layer, as Gemma 4 has them.

use super::{Parts, in_layer, linear};
use crate::layer_embeddings::{LayerEmbeddings, LayerInput};
use crate::norm::Norm;
use crate::weights::{NamedMatrix, NamedVector};

impl Parts<'_> {
    /// Embeddings of `width` elements for each layer. The factors keep the variance of a token's embedding and of the sum.
    pub(crate) fn layer_embeddings(&self, width: u32) -> LayerEmbeddings {
        let rows = self.n_layers as u32 * width;
        let norm = self.norm("layer_projection_norm");
        LayerEmbeddings {
            width,
            tokens: NamedMatrix::new("layer_embeddings.weight", self.vocab_size, rows),
            token_scale: (width as f32).sqrt(),
            projection: linear("layer_projection".to_string(), rows, self.dim),
            // The projection is divided by sqrt(dim) first, which changes nothing but the share of epsilon.
            norm: Norm {
                weight: NamedVector {
                    cols: width,
                    ..norm.weight
                },
                eps: norm.eps * self.dim as f32,
                ..norm
            },
            scale: 0.5f32.sqrt(),
        }
    }

    /// The block of a layer that reads them.
    pub(crate) fn layer_input(&self, at: usize, width: u32) -> LayerInput {
        let of = |part: &str| in_layer(at, &format!("input.{part}"));
        LayerInput {
            width,
            gate: linear(of("gate"), width, self.dim),
            output: linear(of("output"), self.dim, width),
            norm: self.norm(of("norm")),
        }
    }
}
