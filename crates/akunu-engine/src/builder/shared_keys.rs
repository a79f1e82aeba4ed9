//! Attention to the keys and values of an earlier layer.

use akunu_arch::{Attention, BlockNorms};
use akunu_program::{Op, Slice, op};

use super::scratch::Vector;
use super::turn::{heads, rope};
use super::{AttentionMemory, Builder, Of, SeenKeys};
use crate::weights::Weight;

impl Builder<'_> {
    /// `h += Wo attention(turned norm(Wq x))`. The keys are there: nothing is stored.
    pub(super) fn attention_to_earlier(
        &mut self,
        attention: &Attention<Weight, Slice>,
        norms: &BlockNorms<Slice>,
        (x, memory): (Slice, &AttentionMemory),
    ) {
        let SeenKeys::Pages { cache, .. } = memory.keys else {
            unreachable!("layers of encoders compute their keys");
        };
        let vectors = [(); 3].map(|()| self.scratch.take(attention.q_dim()));
        let [q, normed, to] = vectors.each_ref().map(Vector::slice);
        self.products(Of::all(x, "q"), &[(&attention.q, q)]);
        let q = match &attention.qk_norm {
            None => q,
            Some(norms) => {
                self.ops.push(Op::HeadNorm(op::HeadNorm {
                    x: q,
                    weight: norms.q,
                    to: normed,
                    n_heads: heads(attention).n_heads,
                    head_dim: attention.head_dim,
                    eps: norms.eps,
                }));
                normed
            }
        };
        if attention.rope.is_some() {
            self.ops.push(Op::Rope(op::Rope {
                x: q,
                n_heads: attention.heads,
                head_dim: attention.head_dim,
                rope: rope(attention, memory.divisors),
            }));
        }
        self.attend(attention, cache, [q, to]);
        self.add_to_stream(&attention.output, to, norms, "attention output");
    }
}
