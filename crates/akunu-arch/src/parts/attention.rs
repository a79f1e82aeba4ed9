//! Biases, norms and sinks that attention of some models has.

use super::{Parts, in_layer, linear};
use crate::layer::{Attention, HeadNorms, RowNorms};
use crate::linear::Linear;
use crate::weights::NamedVector;

impl Parts<'_> {
    /// Attention with RoPE, with the biases that the file has.
    pub fn attention_with_biases_found(&self, at: usize) -> Attention {
        let plain = self.attention(at);
        Attention {
            q: self.biased_if_found(plain.q),
            k: self.biased_if_found(plain.k),
            v: self.biased_if_found(plain.v),
            output: self.biased_if_found(plain.output),
            ..plain
        }
    }

    /// Attention without biases, whose q, k and v are one tensor: for each key head its query heads, itself and its values.
    pub fn grouped_attention(&self, at: usize) -> Attention {
        let plain = self.attention(at);
        let (head_dim, kv_heads) = (plain.head_dim, plain.kv_heads.max(1));
        let queries = plain.heads / kv_heads * head_dim;
        let step = queries + 2 * head_dim;
        let whole = linear(in_layer(at, "attention.qkv"), kv_heads * step, self.dim).weight;
        let some = |first: u32, len: u32| Linear {
            weight: whole.runs([first, len, step]),
            bias: None,
        };
        Attention {
            q: some(0, queries),
            k: some(queries, head_dim),
            v: some(queries + head_dim, head_dim),
            ..plain
        }
    }

    /// The product of a separate gate of attention.
    pub(crate) fn attention_gate(&self, at: usize) -> Linear {
        let width = self.heads[at] * self.head_dim;
        linear(in_layer(at, "attention.gate"), width, self.dim)
    }

    /// Scores of each head that have no value.
    pub fn sinks(&self, at: usize) -> NamedVector {
        NamedVector::new(in_layer(at, "attention.sinks"), 1, self.heads[at])
    }

    /// Norms of the heads of queries and keys.
    pub fn head_norms(&self, at: usize) -> HeadNorms {
        self.head_norms_of(at, self.head_dim)
    }

    /// The same for heads of this length.
    pub(crate) fn head_norms_of(&self, at: usize, head_dim: u32) -> HeadNorms {
        let norm = |part: &str| NamedVector {
            change: self.norm_change,
            ..NamedVector::new(
                in_layer(at, &format!("attention.{part}_norm.weight")),
                1,
                head_dim,
            )
        };
        HeadNorms {
            q: norm("q"),
            k: norm("k"),
            eps: self.eps,
            turn_first: false,
        }
    }

    /// Norms of all queries and all keys of a token.
    pub fn row_norms(&self, at: usize) -> RowNorms {
        let (heads, kv_heads) = (self.heads[at], self.kv_heads[at]);
        let norm = |part: &str, n_heads: u32| {
            let name = in_layer(at, &format!("attention.{part}_norm"));
            let mut norm = self.norm(name);
            norm.weight.cols = n_heads * self.head_dim;
            norm
        };
        RowNorms {
            q: norm("q", heads),
            k: norm("k", kv_heads),
        }
    }

    /// The same, if the file has them.
    pub fn head_norms_found(&self, at: usize) -> Option<HeadNorms> {
        let name = in_layer(at, "attention.q_norm.weight");
        self.has(&name).then(|| self.head_norms(at))
    }

    /// Norms of the heads of queries and keys after they turn. A turn does not change the root mean square, so that only the
    /// weights come after it. A score is the sum of `wq q wk k`: queries have both weights, and keys are stored without.
    pub fn turned_head_norms(&self, at: usize) -> HeadNorms {
        let HeadNorms { q, k, eps, .. } = self.head_norms(at);
        HeadNorms {
            q: NamedVector {
                times: Some(k.name.clone()),
                ..q
            },
            k,
            eps,
            turn_first: true,
        }
    }

    /// Whether the file has a weight.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.file.store.tensor(name).is_some()
    }
}
