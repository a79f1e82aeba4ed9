//! Embeddings of a token for each layer, and the blocks that read them.

use akunu_arch::{BlockNorms, LayerEmbeddings, LayerInput};
use akunu_program::{GateFunction, Op, Rows, Slice, Weights, op};

use super::of_layers::{LayerEmbedding, OfLayers};
use super::scratch::Vector;
use super::{Builder, Of};
use crate::weights::Weight;

impl Builder<'_> {
    /// Computes them from the tokens and the residual stream before the first layer.
    pub(super) fn layer_embeddings(
        &mut self,
        embeddings: &LayerEmbeddings<Weight, Slice>,
    ) -> OfLayers {
        let table = embeddings.tokens.matrix;
        let row = table.cols;
        let all = self.scratch.take(row);
        self.ops.push(Op::Embed(op::Embed {
            table,
            scale: Some(embeddings.scale * embeddings.token_scale),
            to: all.slice(),
        }));
        let [projected, normed] = [(); 2].map(|()| self.scratch.take(row));
        let of = Of::all(self.stream.slice(), "embeddings of layers");
        self.products(of, &[(&embeddings.projection, projected.slice())]);
        self.ops.push(Op::HeadNorm(op::HeadNorm {
            x: projected.slice(),
            weight: embeddings.norm.weight,
            to: normed.slice(),
            n_heads: row / embeddings.width,
            head_dim: embeddings.width,
            eps: embeddings.norm.eps,
        }));
        self.ops.push(Op::Weigh(op::Weigh {
            x: normed.slice(),
            weights: Weights::One(embeddings.scale),
            n_used: 1,
            width: row,
            rows: Rows::All,
            to: all.slice(),
            add: true,
        }));
        let width = embeddings.width;
        OfLayers { all, width, row }
    }

    /// `h += norm(output (gelu(gate h) * e))`, with the embedding e.
    pub(super) fn layer_input(&mut self, input: &LayerInput<Weight, Slice>, e: LayerEmbedding) {
        let width = input.width;
        let vectors = [(); 3].map(|()| self.scratch.take(width));
        let [embedding, gate, to] = vectors.each_ref().map(Vector::slice);
        self.ops.push(Op::CopyPieces(op::CopyPieces {
            x: e.first,
            x_strides: [e.row, 0],
            to: embedding,
            to_strides: [width, width],
            pieces: 1,
            width,
        }));
        let of = Of::all(self.stream.slice(), "gate of the layer's embedding");
        self.products(of, &[(&input.gate, gate)]);
        self.ops.push(Op::Gate(op::Gate {
            activation: GateFunction::Gelu,
            gate,
            up: embedding,
            to,
            width,
        }));
        let norms = BlockNorms {
            output: Some(input.norm.clone()),
            ..BlockNorms::NONE
        };
        self.add_to_stream(&input.output, to, &norms, "layer's embedding");
    }
}
