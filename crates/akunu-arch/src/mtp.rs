//! The block for multi-token prediction (MTP): a layer that predicts the token after the next one.
//!
//! ```text
//! x = W_e norm_e(embedding(token)) + W_h norm_h(h)      h: the normalised result of the model at the token before
//! h' = norm(layer(x));   logits = output h'
//! ```
//!
//! h' takes the place of h for a further token. The layer attends to the block's own keys and values of all tokens before;
//! at the first token h is 0. Files have W_e and W_h side by side, in one tensor.

use crate::layer::{Layer, Mixer, Norm};
use crate::linear::Linear;
use crate::state::StateSize;
use crate::weights::{Bind, NamedMatrix, NamedVector};

/// The block for multi-token prediction.
#[derive(Clone, Debug, PartialEq)]
pub struct MtpBlock<M = NamedMatrix, V = NamedVector> {
    /// The token embedding, (vocabulary, dim): the model's if the block has no separate one.
    pub embedding: M,
    /// The norm of a token's embedding.
    pub embedding_norm: Norm<V>,
    /// The norm of h.
    pub hidden_norm: Norm<V>,
    /// The product of the embedding.
    pub of_embedding: Linear<M, V>,
    /// The product of h.
    pub of_hidden: Linear<M, V>,
    /// The layer, which has attention.
    pub layer: Layer<M, V>,
    /// The norm of the layer's result.
    pub norm: Norm<V>,
    /// The output matrix, (vocabulary, dim): the model's if the block has no separate one.
    pub output: M,
    /// Width of the residual stream.
    pub dim: u32,
}

impl<M, V> MtpBlock<M, V> {
    /// The state of a sequence for the block, in addition to keys and values: h of the last token.
    pub fn state(&self) -> StateSize {
        StateSize {
            inputs: self.dim,
            memory: 0,
        }
    }
}

impl MtpBlock {
    /// The same block with other weights.
    pub(crate) fn bind<B: Bind>(
        &self,
        to: &mut B,
    ) -> Result<MtpBlock<B::Matrix, B::Vector>, B::Error> {
        Ok(MtpBlock {
            embedding: to.matrix(&self.embedding)?,
            embedding_norm: self.embedding_norm.bind(to)?,
            hidden_norm: self.hidden_norm.bind(to)?,
            of_embedding: self.of_embedding.bind(to)?,
            of_hidden: self.of_hidden.bind(to)?,
            layer: self.layer.bind(to)?,
            norm: self.norm.bind(to)?,
            output: to.matrix(&self.output)?,
            dim: self.dim,
        })
    }

    /// Whether its layer is one that programs can be written for: with attention whose keys and values are nothing but products.
    pub(crate) fn is_supported(&self) -> bool {
        match &self.layer.mixer {
            Mixer::Attention(attention) => {
                attention.row_norm.is_none() && attention.value_eps.is_none()
            }
            Mixer::None
            | Mixer::ShortConv(_)
            | Mixer::DeltaNet(_)
            | Mixer::Ssd(_)
            | Mixer::Both(_) => false,
        }
    }
}
