//! A model as a program: which operations run on which buffers.
//!
//! A layer reads
//!
//! ```text
//! x = norm(h);  q, k, v = Wq x, Wk x, Wv x;  turn q and k, store k and v
//! h += [post-norm] Wo attention(q)
//! x = norm(h);  h += [post-norm] Wdown (act(Wgate x) * Wup x)
//! ```
//!
//! A product that ends in the residual stream is added there. What differs between models comes from fields of the
//! config; nothing here asks for a name.

use std::collections::HashMap;

use akunu_arch::{self as arch, ModelConfig, RopePairing};
use akunu_program::{
    Buffer, ChoiceMemory, Choose, GateFunction, HeadNorms, Heads, LayerCache, Masks, Matrix, Op,
    Pairing, Rope, Rows, ScoreMemory, Slice, op,
};

use crate::rule::MAX_BIASES;
use crate::weights::Weights;

/// Scratch buffers for the rows of a step; every layer uses them again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Activations {
    /// The residual stream, (rows, dim).
    pub h: Buffer,
    /// What a block reads: the normalised residual stream, (rows, dim).
    pub x: Buffer,
    /// Queries, (rows, q_dim).
    pub q: Buffer,
    /// Keys, (rows, kv_dim).
    pub k: Buffer,
    /// Values, (rows, kv_dim).
    pub v: Buffer,
    /// What attention gives, (rows, q_dim).
    pub attention: Buffer,
    /// What a block gives before its norm, (rows, dim).
    pub y: Buffer,
    /// The gate, (rows, ffn_dim).
    pub gate: Buffer,
    /// The other half of the feed-forward block, (rows, ffn_dim).
    pub up: Buffer,
    /// The activated gate times the other half, (rows, ffn_dim).
    pub activated: Buffer,
}

impl Activations {
    /// All of them.
    pub fn buffers(&self) -> [Buffer; 10] {
        let Activations {
            h,
            x,
            q,
            k,
            v,
            attention,
            y,
            gate,
            up,
            activated,
        } = *self;
        [h, x, q, k, v, attention, y, gate, up, activated]
    }
}

/// Buffers for the rows whose logits are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outputs {
    /// Their residual streams, (outputs, dim).
    pub h: Buffer,
    /// The same, normalised, (outputs, dim).
    pub x: Buffer,
    /// Their logits, (outputs, vocabulary).
    pub logits: Buffer,
    /// The best logit of each part, (outputs, parts), and its token.
    pub parts: [Buffer; 2],
    /// Tokens that may be chosen, for rows that have a grammar.
    pub masks: Masks,
    /// The record of log probabilities, once a sequence has requested it.
    pub scores: Option<ScoreMemory>,
    /// How many there is room for.
    pub capacity: u32,
}

/// What rules of choice refer to, for each seat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lists {
    /// Tokens with a bias, (seats, [`MAX_BIASES`]).
    pub bias_tokens: Buffer,
    /// The biases.
    pub bias_values: Buffer,
    /// Tokens at which repetitions end, (seats, vocabulary / 32).
    pub breakers: Buffer,
    /// Mirostat's bounds, (seats).
    pub mu: Buffer,
}

impl Lists {
    /// All of them.
    pub fn buffers(&self) -> [Buffer; 4] {
        [self.bias_tokens, self.bias_values, self.breakers, self.mu]
    }
}

/// Products of one vector that are adapted together: q, k and v.
pub(crate) const MAX_TOGETHER: usize = 3;

/// An adapter that some rows of a step have.
pub(crate) struct Adapted<'a> {
    /// A, of (rank, inputs), and B, of (outputs, rank), by the name of the weight whose product they change.
    pub products: &'a HashMap<String, [Matrix; 2]>,
    /// Where `A x` goes, (rows, rank), for products that are adapted together.
    pub down: [Slice; MAX_TOGETHER],
    /// The scale that each sequence has it with, (seats).
    pub factors: Slice,
}

/// All that the operations of a model name.
pub(crate) struct Graph<'a> {
    pub config: &'a ModelConfig,
    pub weights: &'a Weights,
    pub activations: &'a Activations,
    pub outputs: &'a Outputs,
    pub caches: &'a [LayerCache],
    pub divisors: &'a [Slice],
    /// What keys are stored less of, in each layer; none where they are stored as they are.
    pub centres: &'a [Buffer],
    pub lists: &'a Lists,
    /// The adapters of the step.
    pub adapters: Vec<Adapted<'a>>,
}

/// What products of one vector have in common.
#[derive(Clone, Copy)]
struct Of {
    rows: Rows,
    x: Slice,
    /// Whether they are added to what is there.
    add: bool,
    label: &'static str,
}

/// One product of a vector.
struct Product {
    /// The name by which an adapter knows it.
    name: String,
    weight: Matrix,
    to: Slice,
    bias: Option<Slice>,
}

/// What becomes of keys that move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// They are turned back by as many positions: their tokens come earlier in the text than before.
    Turned,
    /// They stay as they are: they were turned to where they go.
    AsTheyAre,
}

impl Graph<'_> {
    /// Looks up the tokens and runs every layer; the result is in the residual stream.
    pub fn layers(&self) -> Vec<Op> {
        let mut ops = vec![Op::Embed(op::Embed {
            table: self.weights.matrix("token_embedding.weight"),
            scale: self.config.embedding_scale,
            to: self.activations.h.into(),
        })];
        for layer in 0..self.config.layers.len() {
            self.attention_block(layer, &mut ops);
            self.ffn_block(layer, &mut ops);
        }
        ops
    }

    /// The normalised residual streams of the rows whose logits are wanted.
    pub fn hidden(&self) -> Vec<Op> {
        let (h, x) = (self.outputs.h.into(), self.outputs.x.into());
        let dim = self.config.dim;
        vec![
            Op::Gather(op::Gather {
                from: self.activations.h.into(),
                to: h,
                dim,
            }),
            self.norm(Rows::Outputs, h, "output_norm.weight", x),
        ]
    }

    /// The logits of the rows that want them.
    pub fn logits(&self) -> Vec<Op> {
        let mut ops = self.hidden();
        let name = if self.config.tied_embeddings {
            "token_embedding"
        } else {
            "output"
        };
        let logits = Slice::from(self.outputs.logits);
        let of = Of {
            rows: Rows::Outputs,
            x: self.outputs.x.into(),
            add: false,
            label: "logits",
        };
        let product = Product {
            name: "output.weight".into(),
            weight: self.weights.matrix(&format!("{name}.weight")),
            to: logits,
            bias: None,
        };
        self.products(of, &[product], &mut ops);
        if let Some(cap) = self.config.final_softcap {
            ops.push(Op::Softcap(op::Softcap {
                x: logits,
                width: self.config.vocab_size,
                cap,
            }));
        }
        ops
    }

    /// The choice of a token from the logits of each row, as far as masks allow, and the record of how likely it was.
    pub fn choice(&self, how: Choose, is_masked: bool, is_scored: bool) -> Vec<Op> {
        let (outputs, lists) = (self.outputs, self.lists);
        let (logits, vocab_size) = (Slice::from(outputs.logits), self.config.vocab_size);
        let [values, ids] = outputs.parts;
        let choose = Op::Choose(op::Choose {
            how,
            logits,
            vocab_size,
            memory: ChoiceMemory {
                values,
                ids,
                bias_tokens: lists.bias_tokens,
                bias_values: lists.bias_values,
                bias_stride: MAX_BIASES as u32,
                breakers: lists.breakers,
                mu: lists.mu,
            },
        });
        let mask = Op::Mask(op::Mask {
            logits,
            vocab_size,
            masks: outputs.masks,
        });
        let memory = outputs.scores.filter(|_| is_scored);
        let keep = memory.map(|memory| {
            Op::KeepLogits(op::KeepLogits {
                logits,
                to: memory.logits.into(),
                vocab_size,
            })
        });
        let score = memory.map(|memory| Op::Score(op::Score { memory, vocab_size }));
        // How likely a token was is told of the model's own logits, before anything changes them.
        let ops = [keep, is_masked.then_some(mask), Some(choose), score];
        ops.into_iter().flatten().collect()
    }

    /// Moves slots of a sequence down in every layer.
    pub fn shift(&self, [sequence, keep, shift, len]: [u32; 4], keys: Keys) -> Vec<Op> {
        let layers = 0..self.config.layers.len();
        let rope = |layer: usize| match keys {
            Keys::Turned => self.rope(layer),
            Keys::AsTheyAre => Rope {
                freq_scale: 0.0,
                ..self.rope(layer)
            },
        };
        // What is stored of a key that does not turn stays as it is.
        let centre = |layer: usize| match keys {
            Keys::Turned => self.centre(layer),
            Keys::AsTheyAre => None,
        };
        let of_layer = |layer: usize| {
            Op::Shift(op::Shift {
                cache: self.caches[layer],
                heads: self.heads(),
                rope: rope(layer),
                centre: centre(layer),
                sequence,
                keep,
                shift,
                len,
            })
        };
        layers.map(of_layer).collect()
    }

    fn attention_block(&self, layer: usize, ops: &mut Vec<Op>) {
        let name = |part: &str| format!("layers.{layer}.{part}");
        let (config, a) = (self.config, self.activations);
        let [h, x, q, k, v] = [a.h, a.x, a.q, a.k, a.v].map(Slice::from);
        ops.push(self.norm(Rows::All, h, &name("attention_norm.weight"), x));
        let product = |(part, to)| {
            let bias = name(&format!("attention.{part}.bias"));
            let has_bias = config.arch.has_qkv_bias;
            Product {
                bias: has_bias.then(|| self.weights.vector(&bias)),
                ..self.product(name(&format!("attention.{part}.weight")), to)
            }
        };
        let products = [("q", q), ("k", k), ("v", v)].map(product);
        self.products(Of::all(x, "q, k, v"), &products, ops);
        let norm = |part: &str| {
            self.weights
                .vector(&name(&format!("attention.{part}_norm.weight")))
        };
        let norms = || HeadNorms {
            q: norm("q"),
            k: norm("k"),
            eps: config.norm_eps,
        };
        ops.push(Op::RopeStore(op::RopeStore {
            q,
            k,
            v,
            heads: self.heads(),
            rope: self.rope(layer),
            norms: config.arch.has_qk_norm.then(norms),
            centre: self.centre(layer),
            cache: self.caches[layer],
        }));
        let attention = Slice::from(a.attention);
        ops.push(Op::Attend(op::Attend {
            q,
            to: attention,
            heads: self.heads(),
            cache: self.caches[layer],
            scale: config.attention_scale,
            softcap: config.attention_softcap,
        }));
        let post = config.arch.has_post_attention_norm;
        let post = post.then(|| name("post_attention_norm.weight"));
        let output = name("attention.output.weight");
        self.add_to_residual(&output, attention, post, "attention output", ops);
    }

    fn ffn_block(&self, layer: usize, ops: &mut Vec<Op>) {
        let name = |part: &str| format!("layers.{layer}.{part}");
        let a = self.activations;
        let [h, x, gate, up, activated] = [a.h, a.x, a.gate, a.up, a.activated].map(Slice::from);
        ops.push(self.norm(Rows::All, h, &name("ffn_norm.weight"), x));
        let products = [("gate", gate), ("up", up)]
            .map(|(part, to)| self.product(name(&format!("ffn.{part}.weight")), to));
        self.products(Of::all(x, "gate and up"), &products, ops);
        ops.push(Op::Gate(op::Gate {
            activation: match self.config.arch.activation {
                arch::Activation::SiluGate => GateFunction::Silu,
                arch::Activation::GeluGate | arch::Activation::Gelu => GateFunction::Gelu,
                arch::Activation::GeluErfGate => GateFunction::GeluErf,
            },
            gate,
            up,
            to: activated,
            width: self.config.ffn_dim,
        }));
        let post = self.config.arch.has_post_ffn_norm;
        let post = post.then(|| name("post_ffn_norm.weight"));
        self.add_to_residual(&name("ffn.down.weight"), activated, post, "down", ops);
    }

    /// A block's last product goes into the residual stream, or aside when a norm comes between.
    fn add_to_residual(
        &self,
        weight: &str,
        x: Slice,
        post_norm: Option<String>,
        label: &'static str,
        ops: &mut Vec<Op>,
    ) {
        let (h, y) = (
            Slice::from(self.activations.h),
            Slice::from(self.activations.y),
        );
        let has_norm = post_norm.is_some();
        let of = Of {
            add: !has_norm,
            ..Of::all(x, label)
        };
        let to = if has_norm { y } else { h };
        self.products(of, &[self.product(weight.to_string(), to)], ops);
        if let Some(weight) = post_norm {
            ops.push(Op::AddNorm(op::AddNorm {
                x: y,
                weight: self.weights.vector(&weight),
                to: h,
                dim: self.config.dim,
                eps: self.config.norm_eps,
            }));
        }
    }

    fn product(&self, name: String, to: Slice) -> Product {
        Product {
            weight: self.weights.matrix(&name),
            name,
            to,
            bias: None,
        }
    }

    /// Products of one vector, and what adapters add to them: `to += factor * B (A x)`.
    fn products(&self, of: Of, products: &[Product], ops: &mut Vec<Op>) {
        ops.extend(products.iter().map(|product| {
            Op::Product(op::Product {
                rows: of.rows,
                weight: product.weight,
                x: of.x,
                to: product.to,
                add: of.add,
                bias: product.bias,
                label: of.label,
            })
        }));
        for adapter in &self.adapters {
            let pairs = products.iter().zip(adapter.down);
            let adapted: Vec<(Slice, [Matrix; 2], Slice)> = pairs
                .filter_map(|(product, down)| {
                    let matrices = adapter.products.get(&product.name)?;
                    Some((down, *matrices, product.to))
                })
                .collect();
            let part = |weight, x, to, add| {
                Op::Product(op::Product {
                    rows: of.rows,
                    weight,
                    x,
                    to,
                    add,
                    bias: None,
                    label: "adapter",
                })
            };
            let scale = |&(x, [a, _], _): &(Slice, [Matrix; 2], Slice)| {
                Op::ScaleRows(op::ScaleRows {
                    rows: of.rows,
                    x,
                    width: a.rows,
                    factors: adapter.factors,
                })
            };
            ops.extend(
                adapted
                    .iter()
                    .map(|&(down, [a, _], _)| part(a, of.x, down, false)),
            );
            ops.extend(adapted.iter().map(scale));
            ops.extend(
                adapted
                    .iter()
                    .map(|&(down, [_, b], to)| part(b, down, to, true)),
            );
        }
    }

    fn norm(&self, rows: Rows, x: Slice, weight: &str, to: Slice) -> Op {
        Op::Norm(op::Norm {
            rows,
            x,
            weight: self.weights.vector(weight),
            to,
            dim: self.config.dim,
            eps: self.config.norm_eps,
        })
    }

    fn heads(&self) -> Heads {
        Heads {
            n_heads: self.config.n_heads,
            n_kv_heads: self.config.n_kv_heads,
            head_dim: self.config.head_dim,
        }
    }

    fn centre(&self, layer: usize) -> Option<Slice> {
        self.centres.get(layer).map(|&centre| centre.into())
    }

    fn rope(&self, layer: usize) -> Rope {
        let rope = self.config.layers[layer].rope;
        Rope {
            pairing: match self.config.arch.rope {
                Some(RopePairing::Interleaved) => Pairing::Interleaved,
                _ => Pairing::Halves,
            },
            theta: rope.theta,
            freq_scale: rope.freq_scale,
            divisors: self.divisors[layer],
        }
    }
}

impl Of {
    /// Products for all rows that overwrite what is there.
    fn all(x: Slice, label: &'static str) -> Of {
        Of {
            rows: Rows::All,
            x,
            add: false,
            label,
        }
    }
}
