//! A vision tower: from patches to the rows that a language model reads in the place of tokens.
//!
//! ```text
//! h = Wp patch + bp;  h += position of its patch;  layers as in every encoder
//! x = norm(h);  y = projector(squares of x);  after some layers   d = projector(squares of h)
//! ```
//!
//! The rows of a square lie one behind the other, so that squares are rows too: there are as many of them as the step has
//! outputs, and each is `merge²` rows wide.

use akunu_arch::vision::{Join, Projector, Vision};
use akunu_program::{LearnedBy, Op, Rows, Slice, Weights, op};

use super::{
    AttentionMemory, Builder, LayerMemory, MixerMemory, Of, SeenKeys, Vector, activation_function,
};
use crate::weights::Weight;

/// The memory that a tower reads and writes besides its rows and weights.
#[derive(Clone)]
pub(crate) struct Sight {
    /// (rows, numbers of a patch).
    pub patches: Slice,
    /// (rows, dim).
    pub positions: Slice,
    /// Cosines and sines of the two-dimensional RoPE, (rows, 2, head_dim / 2); `None` without it.
    pub turns: Option<Slice>,
    /// Capacity of `positions`, in rows.
    pub n_rows: u32,
    /// (squares, out_dim).
    pub features: Slice,
    /// The same of each projector of a layer.
    pub deep: Vec<Slice>,
}

impl Builder<'_> {
    /// Reads an image.
    pub fn see(&mut self, tower: &Vision<Weight, Slice>, memory: &Sight) {
        let h = self.stream.slice();
        let of = Of::all(memory.patches, "patches");
        self.products(of, &[(&tower.patches, h)]);
        self.ops.push(Op::AddLearned(op::AddLearned {
            by: LearnedBy::Position,
            table: memory.positions,
            n_entries: memory.n_rows,
            x: h,
            dim: self.dim,
        }));
        let merge = tower.input.merge;
        let attention = AttentionMemory {
            // Nothing turns by its position.
            divisors: memory.positions,
            keys: SeenKeys::Text {
                distances: None,
                turns: memory.turns,
            },
        };
        let of_layer = LayerMemory {
            mixer: MixerMemory::Attention(attention),
            cross: None,
            router: None,
        };
        let mut deep = tower.deep.iter().zip(&memory.deep).peekable();
        for (layer, at) in tower.layers.iter().zip(0..) {
            self.layer(layer, &of_layer, None);
            if let Some((deep, to)) = deep.next_if(|(deep, _)| deep.layer == at) {
                let h = self.stream.slice();
                self.project((&deep.projector, merge), h, *to);
            }
        }
        let x = match &tower.norm {
            Some(norm) => self.norm_aside(norm),
            None => self.stream.slice(),
        };
        self.project((&tower.projector, merge), x, memory.features);
    }

    /// `to = projector(squares of x)`.
    fn project(
        &mut self,
        (projector, merge): (&Projector<Weight, Slice>, u32),
        x: Slice,
        to: Slice,
    ) {
        let square = merge * merge;
        let (joined, mut width) = match projector.join {
            Join::Concatenate => (None, square * self.dim),
            Join::Mean => (Some(self.mean_of_squares(x, square)), self.dim),
        };
        let mut x = joined.as_ref().map_or(x, Vector::slice);
        let mut kept = Vec::new();
        if let Some(norm) = &projector.norm {
            let normed = self.of_squares(width, square);
            self.norm((Rows::Outputs, width), norm, x, normed.slice());
            x = normed.slice();
            kept.push(normed);
        }
        let Some((last, before)) = projector.linears.split_last() else {
            unreachable!("a projector has products");
        };
        for linear in before {
            width = linear.weight.matrix.rows;
            let hidden = self.of_squares(width, square);
            self.products(Of::outputs(x, "projector"), &[(linear, hidden.slice())]);
            x = hidden.slice();
            kept.push(hidden);
            self.ops.push(Op::Activate(op::Activate {
                function: activation_function(projector.activation),
                rows: Rows::Outputs,
                x,
                width,
            }));
        }
        self.products(Of::outputs(x, "projector"), &[(last, to)]);
    }

    /// The mean of the rows of each square.
    fn mean_of_squares(&mut self, x: Slice, square: u32) -> Vector {
        let to = self.of_squares(self.dim, square);
        self.ops.push(Op::Weigh(op::Weigh {
            rows: Rows::Outputs,
            x,
            weights: Weights::One(1.0 / square as f32),
            n_used: square,
            width: self.dim,
            to: to.slice(),
            add: false,
        }));
        to
    }

    /// Scratch memory for so many numbers of each square.
    fn of_squares(&self, width: u32, square: u32) -> Vector {
        self.scratch.take(width.div_ceil(square))
    }
}
