//! Whisper: speech to text, encoder and decoder, from the shapes of its weights.

use akunu_gguf::{SpeechError, SpeechFolder};
use serde_json::Value;

use crate::architecture::{Architecture, Read};
use crate::error::ArchError;
use crate::ffn::{Dense, DenseActivation, Ffn};
use crate::layer::{
    Attention, BlockNorms, Cross, Layer, LayerNorms, MAX_HEAD_LENGTH, Mixer, Norm, NormKind,
};
use crate::linear::Linear;
use crate::model::{Embedding, Logits, Model, Output, Table};
use crate::parts::linear;
use crate::rope::Pairing;
use crate::speech::{Convolution, SoundEncoder, Speech};
use crate::weights::{NamedMatrix, NamedVector};

/// Layer norms and biases everywhere, no gate, no RoPE.
pub const ARCH: Architecture = Architecture {
    name: "whisper",
    model_types: &["whisper"],
    pairing: Pairing::SplitHalves,
    read: Read::Speech,
};

/// Added under the root of the norms.
const EPS: f32 = 1e-5;
/// More layers than any Whisper has.
const MAX_LAYERS: u32 = 256;

impl Speech {
    /// Reads the shapes of the weights, and what `config.json` or `generation_config.json` says of tokens and heads.
    pub fn from_folder(folder: &SpeechFolder) -> Result<Speech, ArchError> {
        let [dim, n_mels, taps] = dims(folder, "encoder.conv1.weight")?;
        let [n_audio_positions, _] = dims(folder, "encoder.embed_positions.weight")?;
        let [n_text_positions, _] = dims(folder, "decoder.embed_positions.weight")?;
        let [vocab_size, _] = dims(folder, "decoder.embed_tokens.weight")?;
        let [ffn_dim, _] = dims(folder, "encoder.layers.0.fc1.weight")?;
        let invalid = |key: &str, found: String, wanted| ArchError::Invalid {
            path: folder.path().to_path_buf(),
            key: key.to_string(),
            found,
            wanted,
        };
        let missing = || ArchError::Missing {
            path: folder.path().join("config.json"),
            key: "encoder_attention_heads".to_string(),
        };
        let n_heads = folder.n_heads().ok_or_else(missing)?;
        let head_dim = dim.checked_div(n_heads).unwrap_or(0);
        let is_whole = head_dim > 0 && dim.is_multiple_of(n_heads) && head_dim.is_multiple_of(8);
        if !is_whole || head_dim > MAX_HEAD_LENGTH {
            let found = format!("{n_heads} for a width of {dim}");
            let wanted = "so many that each has a multiple of 8 numbers, at most 256";
            return Err(invalid("heads", found, wanted));
        }
        let [n_encoder_layers, n_decoder_layers] =
            ["encoder", "decoder"].map(|of| n_layers(folder, of));
        if n_decoder_layers == 0 {
            let found = n_decoder_layers.to_string();
            return Err(invalid("decoder layers", found, "at least one"));
        }
        if taps != 3 || n_mels > 128 || n_audio_positions > 1 << 14 || n_text_positions > 1 << 14 {
            let found = format!("{n_mels} filters, {taps} taps, {n_audio_positions} positions");
            return Err(invalid("encoder", found, "of a size that Whisper can have"));
        }
        let said = folder.generation_config()?;
        // Distilled models come with the list of the larger one that they learned from, which says nothing of their own heads.
        let alignment_heads = heads(&said["alignment_heads"]);
        let is_own = |&(layer, head): &(u32, u32)| layer < n_decoder_layers && head < n_heads;
        let is_known = alignment_heads.iter().all(is_own);
        let parts = Parts {
            dim,
            heads: n_heads,
            ffn: ffn_dim,
        };
        Ok(Speech {
            encoder: parts.encoder(n_mels, n_audio_positions, n_encoder_layers),
            decoder: parts.decoder(vocab_size, n_text_positions, n_decoder_layers),
            suppressed: ids(&said, &["suppress_ids", "suppress_tokens"]),
            suppressed_first: ids(&said, &["suppress_ids_begin", "begin_suppress_tokens"]),
            alignment_heads: if is_known {
                alignment_heads
            } else {
                Vec::new()
            },
        })
    }
}

/// The sizes that both halves share, and the parts of these sizes.
struct Parts {
    dim: u32,
    heads: u32,
    ffn: u32,
}

impl Parts {
    fn encoder(&self, n_mels: u32, n_positions: u32, n_layers: u32) -> SoundEncoder {
        let convolution = |name: &str, channels: u32| Convolution {
            weight: NamedMatrix {
                taps: 3,
                stack: 1,
                ..NamedMatrix::new(format!("encoder.{name}.weight"), self.dim, 3 * channels)
            },
            bias: NamedVector::new(format!("encoder.{name}.bias"), 1, self.dim),
        };
        SoundEncoder {
            n_mels,
            n_positions,
            convolutions: [convolution("conv1", n_mels), convolution("conv2", self.dim)],
            positions: self.positions("encoder", n_positions),
            layers: (0..n_layers)
                .map(|at| self.layer(&format!("encoder.layers.{at}")))
                .collect(),
            norm: self.norm("encoder.layer_norm".into()),
        }
    }

    fn decoder(&self, vocab_size: u32, n_positions: u32, n_layers: u32) -> Model {
        let tokens = NamedMatrix::new("decoder.embed_tokens.weight", vocab_size, self.dim);
        let layer = |at: u32| {
            let name = format!("decoder.layers.{at}");
            Layer {
                cross: Some(Cross {
                    norm: self.norm(format!("{name}.encoder_attn_layer_norm")),
                    attention: self.attention(&format!("{name}.encoder_attn")),
                }),
                ..self.layer(&name)
            }
        };
        Model {
            arch: ARCH.name,
            dim: self.dim,
            vocab_size,
            context_length: n_positions,
            long_rope: None,
            images: None,
            embedding: Embedding {
                tokens: tokens.clone(),
                scale: None,
                kinds: None,
                positions: Some(Table {
                    weight: self.positions("decoder", n_positions),
                    first: 0,
                    entries: n_positions,
                }),
                distances: None,
                norm: None,
                of_layers: None,
            },
            layers: (0..n_layers).map(layer).collect(),
            norm: Some(self.norm("decoder.layer_norm".into())),
            output: Output::Logits(Logits {
                weight: tokens,
                is_tied: true,
                scale: None,
                softcap: None,
            }),
            mtp: None,
        }
    }

    fn layer(&self, name: &str) -> Layer {
        let of = |norm: &str| BlockNorms {
            input: Some(self.norm(format!("{name}.{norm}"))),
            ..BlockNorms::NONE
        };
        let (dim, width) = (self.dim, self.ffn);
        Layer {
            mixer: Mixer::Attention(self.attention(&format!("{name}.self_attn"))),
            cross: None,
            ffn: Ffn::Dense(Dense {
                activation: DenseActivation::GeluErf,
                width,
                up: linear(format!("{name}.fc1"), width, dim).with_bias(),
                down: linear(format!("{name}.fc2"), dim, width).with_bias(),
            }),
            norms: LayerNorms {
                mixer: of("self_attn_layer_norm"),
                ffn: of("final_layer_norm"),
            },
            is_parallel: false,
            input: None,
            scale: None,
        }
    }

    fn attention(&self, name: &str) -> Attention {
        let part =
            |part: &str| -> Linear { linear(format!("{name}.{part}_proj"), self.dim, self.dim) };
        let head_dim = self.dim / self.heads;
        Attention {
            heads: self.heads,
            kv_heads: self.heads,
            head_dim,
            keys_of: None,
            latent: None,
            has_gate: false,
            gate: None,
            q: part("q").with_bias(),
            // Keys have no bias: it would add the same to all scores.
            k: part("k"),
            v: part("v").with_bias(),
            output: part("out").with_bias(),
            qk_norm: None,
            row_norm: None,
            value_eps: None,
            rope: None,
            window: None,
            scale: 1.0 / (head_dim as f32).sqrt(),
            temperature: None,
            softcap: None,
            sinks: None,
        }
    }

    fn positions(&self, half: &str, entries: u32) -> NamedVector {
        NamedVector::new(format!("{half}.embed_positions.weight"), entries, self.dim)
    }

    fn norm(&self, module: String) -> Norm {
        let norm = Norm {
            kind: NormKind::Layer,
            weight: NamedVector::new(format!("{module}.weight"), 1, self.dim),
            bias: None,
            eps: EPS,
        };
        norm.with_bias()
    }
}

/// The dimensions of a weight, of which there must be as many, each of a size that fits our numbers.
fn dims<const N: usize>(folder: &SpeechFolder, name: &str) -> Result<[u32; N], ArchError> {
    let found = folder.tensor(name)?.dims;
    let sizes = found.iter().map(|&dim| u32::try_from(dim).ok());
    let sizes: Option<Vec<u32>> = sizes.collect();
    let sizes = sizes.and_then(|sizes| <[u32; N]>::try_from(sizes).ok());
    sizes.ok_or_else(|| ArchError::Invalid {
        path: folder.path().to_path_buf(),
        key: name.to_string(),
        found: format!("of the shape {found:?}"),
        wanted: "of the shape that Whisper has",
    })
}

/// How many layers of a stack are there, one after the other.
fn n_layers(folder: &SpeechFolder, stack: &str) -> u32 {
    let is_there = |layer: &u32| {
        let name = format!("{stack}.layers.{layer}.fc1.weight");
        folder.tensor(&name).is_ok()
    };
    (0..MAX_LAYERS).take_while(is_there).count() as u32
}

/// A list of tokens, under the first of these keys that is there.
fn ids(config: &Value, keys: &[&str]) -> Vec<u32> {
    let list = keys.iter().find_map(|key| config[*key].as_array());
    let ids = list.into_iter().flatten();
    ids.filter_map(|id| u32::try_from(id.as_u64()?).ok())
        .collect()
}

fn heads(list: &Value) -> Vec<(u32, u32)> {
    let pair = |pair: &Value| {
        let number = |at: usize| u32::try_from(pair[at].as_u64()?).ok();
        Some((number(0)?, number(1)?))
    };
    let heads = list.as_array().into_iter().flatten();
    heads.filter_map(pair).collect()
}

impl From<SpeechError> for ArchError {
    fn from(error: SpeechError) -> ArchError {
        ArchError::Speech(Box::new(error))
    }
}
