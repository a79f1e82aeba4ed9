//! An encoder as a program.
//!
//! ```text
//! x = norm(tokens + types + positions)
//! for each layer
//!     q, k, v = Wq x, Wk x, Wv x;  turn q and k, where the model does so
//!     x += Wo attention(q, k, v);  h = norm(x)
//!     h += Wdown act(Wup h), or h += Wdown (act(Wgate h) * Wup h);  x = norm(h)
//! ```
//!
//! or, where blocks normalise what they read,
//!
//! ```text
//! for each layer
//!     h = norm(x), but x in the first layer;  q, k, v = Wq h, Wk h, Wv h;  turn q and k
//!     x += Wo attention(q, k, v);  h = norm(x)
//!     x += Wdown (act(Wgate h) * Wup h)
//! h = norm(x)
//! ```
//!
//! Every product may have a bias. What differs between models comes from fields of the config.

use akunu_arch::{Activation, ClassifierHead, ModelConfig, Pooling, RopePairing};
use akunu_program::{
    DistanceBias, GateFunction, Heads, LearnedBy, Op, Pairing, Rope, RowKeys, Rows, Slice, op,
};

use super::memory::{Memory, divisor_stride};
use crate::weights::Weights;

/// What comes of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Wanted {
    /// Its vector.
    Vector,
    /// The scores of the classifier.
    Scores,
}

/// All that the operations of an encoder name.
pub(super) struct Graph<'a> {
    pub config: &'a ModelConfig,
    pub weights: &'a Weights,
    pub memory: &'a Memory,
    pub pooling: Pooling,
    pub distance_bias: Option<DistanceBias>,
}

impl Graph<'_> {
    pub fn ops(&self, wanted: Wanted) -> Vec<Op> {
        let mut ops = self.embedding();
        for layer in 0..self.config.layers.len() {
            self.attention_block(layer, &mut ops);
            self.ffn_block(layer, &mut ops);
        }
        if self.norms_inputs() {
            ops.push(self.norm("output_norm", self.memory.x.into(), self.memory.h.into()));
        }
        match wanted {
            Wanted::Vector => ops.push(self.pooled(self.pooling)),
            Wanted::Scores => ops.extend(self.scores()),
        }
        ops
    }

    fn norms_inputs(&self) -> bool {
        self.config.arch.norms_inputs
    }

    /// Where the vectors of all tokens are in the end.
    fn result(&self) -> Slice {
        if self.norms_inputs() {
            self.memory.h.into()
        } else {
            self.memory.x.into()
        }
    }

    /// The first vectors of all tokens, in x.
    fn embedding(&self) -> Vec<Op> {
        let (config, h) = (self.config, Slice::from(self.memory.h));
        let mut ops = vec![Op::Embed(op::Embed {
            table: self.weights.matrix("token_embedding.weight"),
            scale: config.embedding_scale,
            to: h,
        })];
        let tables = [
            (
                LearnedBy::Kind,
                "token_types.weight",
                0..config.n_token_types,
            ),
            (
                LearnedBy::Position,
                "position_embedding.weight",
                config.arch.first_position..config.arch.first_position + config.n_positions,
            ),
        ];
        for (by, name, entries) in tables {
            if !entries.is_empty() {
                let table = self.weights.vector(name);
                let row_bytes = size_of::<f32>() * config.dim as usize;
                ops.push(Op::AddLearned(op::AddLearned {
                    by,
                    table: Slice {
                        offset: table.offset + entries.start as usize * row_bytes,
                        ..table
                    },
                    n_entries: entries.len() as u32,
                    x: h,
                    dim: config.dim,
                }));
            }
        }
        ops.push(self.norm("token_embedding_norm", h, self.memory.x.into()));
        ops
    }

    /// From x to h.
    fn attention_block(&self, layer: usize, ops: &mut Vec<Op>) {
        let name = |part: &str| format!("layers.{layer}.{part}");
        let (config, m) = (self.config, self.memory);
        let [h, x, q, k, v, attention] = [m.h, m.x, m.q, m.k, m.v, m.attention].map(Slice::from);
        let mut read = x;
        if self.norms_inputs() && layer > 0 {
            ops.push(self.norm(&name("attention_norm"), x, h));
            read = h;
        }
        for (part, to) in [("q", q), ("k", k), ("v", v)] {
            let product = self.product(&name(&format!("attention.{part}")), read, to, "q, k, v");
            ops.push(product);
        }
        if let Some(pairing) = config.arch.rope {
            for (x, n_heads) in [(q, config.n_heads), (k, config.n_kv_heads)] {
                ops.push(Op::Rope(op::Rope {
                    x,
                    n_heads,
                    head_dim: config.head_dim,
                    rope: self.rope(layer, pairing),
                }));
            }
        }
        ops.push(Op::AttendRows(op::AttendRows {
            q,
            k,
            v,
            to: attention,
            heads: Heads {
                n_heads: config.n_heads,
                n_kv_heads: config.n_kv_heads,
                head_dim: config.head_dim,
            },
            keys: match config.layers[layer].window {
                Some(window) => RowKeys::Nearby { reach: window / 2 },
                None => RowKeys::OwnText,
            },
            scale: config.attention_scale,
            bias: self.distance_bias,
        }));
        let output = self.product(&name("attention.output"), attention, x, "attention output");
        ops.push(added(output));
        let norm = if self.norms_inputs() {
            "ffn_norm"
        } else {
            "attention_output_norm"
        };
        ops.push(self.norm(&name(norm), x, h));
    }

    /// From h to x.
    fn ffn_block(&self, layer: usize, ops: &mut Vec<Op>) {
        let name = |part: &str| format!("layers.{layer}.{part}");
        let (config, m) = (self.config, self.memory);
        let [h, x, gate, up] = [m.h, m.x, m.gate, m.up].map(Slice::from);
        let width = config.ffn_dim;
        ops.push(self.product(&name("ffn.up"), h, up, "up"));
        let activation = match config.arch.activation {
            Activation::SiluGate => Some(GateFunction::Silu),
            Activation::GeluGate => Some(GateFunction::Gelu),
            Activation::GeluErfGate => Some(GateFunction::GeluErf),
            Activation::Gelu => None,
        };
        let activated = if let Some(activation) = activation {
            let activated = Slice::from(m.activated);
            ops.push(self.product(&name("ffn.gate"), h, gate, "gate"));
            ops.push(Op::Gate(op::Gate {
                activation,
                gate,
                up,
                to: activated,
                width,
            }));
            activated
        } else {
            let rows = Rows::All;
            ops.push(Op::Gelu(op::Gelu { rows, x: up, width }));
            up
        };
        let to = if self.norms_inputs() { x } else { h };
        ops.push(added(self.product(
            &name("ffn.down"),
            activated,
            to,
            "down",
        )));
        if !self.norms_inputs() {
            ops.push(self.norm(&name("layer_output_norm"), h, x));
        }
    }

    /// One vector for each text.
    fn pooled(&self, pooling: Pooling) -> Op {
        let (from, to) = (self.result(), self.memory.pooled.into());
        let dim = self.config.dim;
        match pooling {
            Pooling::Mean => Op::Mean(op::Mean { from, to, dim }),
            Pooling::First | Pooling::Last => Op::Gather(op::Gather { from, to, dim }),
        }
    }

    /// `scores = Wc head(v)`, where v is what the classifier reads.
    fn scores(&self) -> Vec<Op> {
        let mut ops = vec![self.pooled(self.config.classifier_pooling)];
        let state = self.head(&mut ops);
        let scores = self.memory.scores.into();
        ops.push(of_outputs(self.product(
            "classifier",
            state,
            scores,
            "classifier",
        )));
        ops
    }

    /// `tanh(Wp v)`, `norm(gelu(Wp v))` or v itself, and where that is.
    fn head(&self, ops: &mut Vec<Op>) -> Slice {
        let [v, hidden] = [self.memory.pooled, self.memory.hidden].map(Slice::from);
        let Some(head) = self.config.classifier_head else {
            return v;
        };
        let width = self.config.dim;
        ops.push(of_outputs(self.product("pooler", v, hidden, "pooler")));
        match head {
            ClassifierHead::Tanh => {
                // A cap of 1 is the hyperbolic tangent itself.
                let (x, cap) = (hidden, 1.0);
                ops.push(Op::Softcap(op::Softcap { x, width, cap }));
                hidden
            }
            ClassifierHead::GeluNorm => {
                let (rows, x) = (Rows::Outputs, hidden);
                ops.push(Op::Gelu(op::Gelu { rows, x, width }));
                ops.push(of_outputs(self.norm("pooler_norm", hidden, v)));
                v
            }
        }
    }

    fn product(&self, name: &str, x: Slice, to: Slice, label: &'static str) -> Op {
        Op::Product(op::Product {
            rows: Rows::All,
            weight: self.weights.matrix(&format!("{name}.weight")),
            x,
            to,
            add: false,
            bias: self.weights.find_vector(&format!("{name}.bias")),
            label,
        })
    }

    fn norm(&self, name: &str, x: Slice, to: Slice) -> Op {
        let bias = self.weights.find_vector(&format!("{name}.bias"));
        Op::LayerNorm(op::LayerNorm {
            rows: Rows::All,
            x,
            weight: self.weights.vector(&format!("{name}.weight")),
            bias: bias.unwrap_or(self.memory.zeros.into()),
            to,
            dim: self.config.dim,
            eps: self.config.norm_eps,
        })
    }

    fn rope(&self, layer: usize, pairing: RopePairing) -> Rope {
        let rope = self.config.layers[layer].rope;
        Rope {
            pairing: match pairing {
                RopePairing::Interleaved => Pairing::Interleaved,
                RopePairing::SplitHalves => Pairing::Halves,
            },
            theta: rope.theta,
            freq_scale: rope.freq_scale,
            divisors: Slice {
                buffer: self.memory.divisors,
                offset: size_of::<f32>() * layer * divisor_stride(self.config) as usize,
            },
        }
    }
}

/// The same product, added to what is there.
fn added(mut product: Op) -> Op {
    if let Op::Product(op::Product { add, .. }) = &mut product {
        *add = true;
    }
    product
}

/// The same product or norm, of the outputs alone.
fn of_outputs(mut op: Op) -> Op {
    if let Op::Product(op::Product { rows, .. }) | Op::LayerNorm(op::LayerNorm { rows, .. }) =
        &mut op
    {
        *rows = Rows::Outputs;
    }
    op
}
