//! A speech model as two programs.
//!
//! ```text
//! encoder   h = gelu(conv2(gelu(conv1(spectrogram)))) + positions
//!           for each layer   h += Wo attention(norm(h)), of all positions;  h += W2 gelu(W1 norm(h))
//!           for each layer of the decoder   K, V = Wk norm(h), Wv norm(h), as halves
//! decoder   h = tokens + positions
//!           for each layer   h += Wo attention(norm(h)), of what was said;  h += Wo attention(norm(h), K, V)
//!                            h += W2 gelu(W1 norm(h))
//!           logits = tokensᵀ norm(h);  the next token is chosen by the rules of a transcript
//! ```
//!
//! The keys and values of what was said lie in pages, as those of every decoder do. They are not turned: RoPE's divisors
//! are infinite.

use akunu_arch::SpeechConfig;
use akunu_program::{
    Choose, Heads, LearnedBy, Op, Pairing, Rope, RowKeys, Rows, Slice, TranscriptTokens, Windows,
    op,
};

use super::memory::{Activations, Memory};
use super::weights::SpeechWeights;

/// Added under the root of the norms.
const EPS: f32 = 1e-5;

/// All that the operations of a model name.
pub(super) struct Graph<'a> {
    pub config: &'a SpeechConfig,
    pub weights: &'a SpeechWeights,
    pub memory: &'a Memory,
}

impl Graph<'_> {
    /// From a spectrogram to the keys and values of every layer of the decoder, those of this window.
    pub fn encoder(&self, window: u32) -> Vec<Op> {
        let a = &self.memory.audio;
        let mut ops = self.stem();
        for layer in 0..self.config.n_encoder_layers {
            let name = |part: &str| format!("encoder.layers.{layer}.{part}");
            ops.push(self.norm(Rows::All, &name("self_attn_layer_norm"), a.h, a.x));
            for (part, to) in [("q", a.q), ("k", a.k), ("v", a.v)] {
                ops.push(self.product(&name(&format!("self_attn.{part}_proj")), a.x, to));
            }
            ops.push(Op::AttendRows(op::AttendRows {
                q: a.q,
                k: a.k,
                v: a.v,
                to: a.attention,
                heads: self.heads(),
                keys: RowKeys::OwnText,
                scale: self.scale(),
                bias: None,
            }));
            ops.push(added(self.product(
                &name("self_attn.out_proj"),
                a.attention,
                a.h,
            )));
            self.feed_forward(&name(""), a, &mut ops);
        }
        ops.push(self.norm(Rows::All, "encoder.layer_norm", a.h, a.x));
        for (layer, cross) in self.memory.cross.iter().enumerate() {
            let name = |part: &str| format!("decoder.layers.{layer}.encoder_attn.{part}_proj");
            for (part, to) in [("k", cross.k), ("v", cross.v)] {
                ops.push(self.product(&name(part), a.x, a.k));
                ops.push(Op::Halves(op::Halves {
                    rows: Rows::All,
                    x: a.k,
                    to: self.memory.of_window(self.config, to, window),
                    width: self.config.dim,
                }));
            }
        }
        ops
    }

    /// The two convolutions and the positions. Around the signal of each there is a step of zeros.
    fn stem(&self) -> Vec<Op> {
        let (config, memory) = (self.config, self.memory);
        let (dim, n_positions) = (config.dim, config.n_audio_positions);
        let signal = Slice {
            buffer: memory.signal,
            offset: 4 * dim as usize,
        };
        let conv = |name: &str, x: Slice, windows: Windows, to: Slice| {
            Op::Convolve(op::Convolve {
                weight: self.weights.matrix(&format!("encoder.{name}.weight")),
                bias: self.weights.vector(&format!("encoder.{name}.bias")),
                x,
                windows,
                to,
            })
        };
        let rows = Rows::All;
        let first = Windows {
            count: 2 * n_positions,
            stride: config.n_mels,
        };
        let second = Windows {
            count: n_positions,
            stride: 2 * dim,
        };
        let h = memory.audio.h;
        vec![
            conv("conv1", memory.spectrogram.into(), first, signal),
            // Two steps of the signal for each position.
            Op::Gelu(op::Gelu {
                rows,
                x: signal,
                width: 2 * dim,
            }),
            conv("conv2", memory.signal.into(), second, h),
            Op::Gelu(op::Gelu {
                rows,
                x: h,
                width: dim,
            }),
            Op::AddLearned(op::AddLearned {
                by: LearnedBy::Position,
                table: self.weights.vector("encoder.embed_positions.weight"),
                n_entries: n_positions,
                x: h,
                dim,
            }),
        ]
    }

    /// From tokens to the logits of the rows that want them.
    pub fn decoder(&self) -> Vec<Op> {
        let (a, memory, dim) = (&self.memory.text, self.memory, self.config.dim);
        let tokens = self.weights.matrix("decoder.embed_tokens.weight");
        let mut ops = vec![
            Op::Embed(op::Embed {
                table: tokens,
                scale: None,
                to: a.h,
            }),
            Op::AddLearned(op::AddLearned {
                by: LearnedBy::Position,
                table: self.weights.vector("decoder.embed_positions.weight"),
                n_entries: self.config.n_text_positions,
                x: a.h,
                dim,
            }),
        ];
        for layer in 0..self.config.n_decoder_layers as usize {
            self.self_attention(layer, &mut ops);
            self.cross_attention(layer, &mut ops);
            self.feed_forward(&format!("decoder.layers.{layer}."), a, &mut ops);
        }
        let (h, x) = (memory.output.into(), memory.normalised_output.into());
        ops.push(Op::Gather(op::Gather {
            from: a.h,
            to: h,
            dim,
        }));
        ops.push(self.norm(Rows::Outputs, "decoder.layer_norm", h, x));
        ops.push(Op::Product(op::Product {
            rows: Rows::Outputs,
            weight: tokens,
            x,
            to: memory.logits.into(),
            add: false,
            bias: None,
            label: "logits",
        }));
        ops
    }

    /// The choice of a token from the logits of each row, among those that may follow, and the record of how probable it
    /// was among them; then every row moves on to it.
    pub fn choice(&self, how: Choose, tokens: TranscriptTokens) -> Vec<Op> {
        let (memory, vocab_size) = (self.memory, self.config.vocab_size);
        let logits = memory.logits.into();
        vec![
            Op::SpeechRules(op::SpeechRules {
                logits,
                vocab_size,
                masks: memory.masks.into(),
                tokens,
            }),
            Op::Choose(op::Choose {
                how,
                logits,
                vocab_size,
                memory: memory.choice,
            }),
            Op::Score(op::Score {
                memory: memory.scores,
                vocab_size,
            }),
            Op::Advance,
        ]
    }

    fn self_attention(&self, layer: usize, ops: &mut Vec<Op>) {
        let (a, memory) = (&self.memory.text, self.memory);
        let name = |part: &str| format!("decoder.layers.{layer}.self_attn{part}");
        ops.push(self.norm(Rows::All, &name("_layer_norm"), a.h, a.x));
        for (part, to) in [("q", a.q), ("k", a.k), ("v", a.v)] {
            ops.push(self.product(&name(&format!(".{part}_proj")), a.x, to));
        }
        ops.push(Op::RopeStore(op::RopeStore {
            q: a.q,
            k: a.k,
            v: a.v,
            heads: self.heads(),
            rope: Rope {
                pairing: Pairing::Halves,
                theta: 1.0,
                freq_scale: 1.0,
                divisors: memory.divisors.into(),
            },
            centre: None,
            norms: None,
            cache: memory.caches[layer],
        }));
        ops.push(Op::Attend(op::Attend {
            q: a.q,
            to: a.attention,
            heads: self.heads(),
            cache: memory.caches[layer],
            scale: self.scale(),
            softcap: None,
        }));
        ops.push(added(self.product(&name(".out_proj"), a.attention, a.h)));
    }

    fn cross_attention(&self, layer: usize, ops: &mut Vec<Op>) {
        let (a, cross) = (&self.memory.text, &self.memory.cross[layer]);
        let name = |part: &str| format!("decoder.layers.{layer}.encoder_attn{part}");
        ops.push(self.norm(Rows::All, &name("_layer_norm"), a.h, a.x));
        ops.push(self.product(&name(".q_proj"), a.x, cross.q.into()));
        ops.push(Op::AttendRows(op::AttendRows {
            q: cross.q.into(),
            k: cross.k.into(),
            v: cross.v.into(),
            to: a.attention,
            heads: self.heads(),
            keys: RowKeys::Across {
                n_keys: self.config.n_audio_positions,
            },
            scale: self.scale(),
            bias: None,
        }));
        ops.push(added(self.product(&name(".out_proj"), a.attention, a.h)));
    }

    fn feed_forward(&self, layer: &str, a: &Activations, ops: &mut Vec<Op>) {
        let (rows, width) = (Rows::All, self.config.ffn_dim);
        ops.push(self.norm(rows, &format!("{layer}final_layer_norm"), a.h, a.x));
        ops.push(self.product(&format!("{layer}fc1"), a.x, a.up));
        ops.push(Op::Gelu(op::Gelu {
            rows,
            x: a.up,
            width,
        }));
        ops.push(added(self.product(&format!("{layer}fc2"), a.up, a.h)));
    }

    fn product(&self, name: &str, x: Slice, to: Slice) -> Op {
        Op::Product(op::Product {
            rows: Rows::All,
            weight: self.weights.matrix(&format!("{name}.weight")),
            x,
            to,
            add: false,
            bias: self.weights.find_vector(&format!("{name}.bias")),
            label: "product",
        })
    }

    fn norm(&self, rows: Rows, name: &str, x: Slice, to: Slice) -> Op {
        Op::LayerNorm(op::LayerNorm {
            rows,
            x,
            weight: self.weights.vector(&format!("{name}.weight")),
            bias: self.weights.vector(&format!("{name}.bias")),
            to,
            dim: self.config.dim,
            eps: EPS,
        })
    }

    fn heads(&self) -> Heads {
        Heads {
            n_heads: self.config.n_heads,
            n_kv_heads: self.config.n_heads,
            head_dim: self.config.head_dim(),
        }
    }

    fn scale(&self) -> f32 {
        1.0 / (self.config.head_dim() as f32).sqrt()
    }
}

/// The same product, added to what is there.
fn added(mut product: Op) -> Op {
    if let Op::Product(op::Product { add, .. }) = &mut product {
        *add = true;
    }
    product
}
