//! The parts that architectures are made of, with the names of their weights. Llama, Qwen, Gemma and their like share
//! these names; `akunu-gguf` maps those of GGUF files and of Hugging Face to them.

mod attention;
mod delta;
mod encoder;
mod experts;
mod latent;
mod layer_embeddings;
mod mtp;
mod norms;
mod ssd;
mod state;

use crate::error::ArchError;
use crate::ffn::{Activation, Dense, DenseActivation, Ffn, Gated};
use crate::file::{ModelFile, WindowPattern, keys};
use crate::images::ImageInput;
use crate::layer::{Attention, BlockNorms, Layer, LayerNorms, Mixer, Norm, NormKind};
use crate::linear::Linear;
use crate::long_rope::LongRope;
use crate::model::{Embedding, Logits, Model, Output};
use crate::rope::Rope;
use crate::weights::{Change, NamedMatrix, NamedVector};

pub(crate) use delta::DeltaSizes;
pub(crate) use experts::{ExpertParts, Routing};
pub(crate) use latent::LatentSizes;

/// The weight that the embedding lookup reads.
pub(crate) const TOKEN_EMBEDDING: &str = "token_embedding.weight";
/// The weight of the logits. A model with tied embeddings has their product and no weight of this name.
pub const OUTPUT: &str = "output.weight";

/// Positions of a model whose file does not say for how many it was trained.
const ANY_CONTEXT: u32 = 1 << 20;

/// The sizes of a model, and the parts of these sizes: what most architectures share.
pub struct Parts<'a> {
    /// The description that they were read from.
    pub file: &'a ModelFile<'a>,
    /// Width of the residual stream.
    pub dim: u32,
    /// Layers.
    pub n_layers: usize,
    /// Positions that the model was trained for.
    pub context_length: u32,
    /// Added under the root of all norms.
    pub eps: f32,
    /// How the weights of norms follow from those of the file.
    pub norm_change: Change,
    /// Elements of a head.
    pub head_dim: u32,
    /// Query heads of each layer.
    pub heads: Vec<u32>,
    /// Key and value heads of each layer; GGUF files say 0 for layers without attention.
    pub kv_heads: Vec<u32>,
    /// Width of the feed-forward block of each layer.
    pub ffn: Vec<u32>,
    vocab_size: u32,
    windows: Vec<Option<u32>>,
    rope: Rope,
    local_rope: Rope,
    long_rope: Option<LongRope>,
}

impl<'a> Parts<'a> {
    /// The sizes that a file says. Which layers have its window is said by `pattern`, unless the file does; `local_base` is
    /// the RoPE base of those layers, if they have one of their own.
    pub fn read(
        file: &'a ModelFile<'a>,
        pattern: WindowPattern,
        local_base: Option<f32>,
    ) -> Result<Parts<'a>, ArchError> {
        let sizes = Parts::without_attention(file)?;
        let (n_layers, dim) = (sizes.n_layers, sizes.dim);
        let of_layers = |key| {
            let found = file.of_layers(key, n_layers)?;
            found.ok_or_else(|| file.missing(key))
        };
        let ffn = of_layers(keys::FFN)?;
        let heads = of_layers(keys::HEADS)?;
        let kv_heads = file.of_layers(keys::KV_HEADS, n_layers)?;
        let kv_heads = kv_heads.unwrap_or_else(|| heads.clone());
        let even_share = heads.first().and_then(|&heads| dim.checked_div(heads));
        let head_dim = file.u32(keys::HEAD_DIM)?.or(even_share).unwrap_or(0);
        let context_length = file.required(keys::CONTEXT)?;
        for &width in &ffn {
            // Layers may be without.
            file.check_size("feed-forward length", width.max(1), 1 << 22)?;
        }
        for (&heads, &kv_heads) in heads.iter().zip(&kv_heads) {
            file.check_size("heads", heads, 1 << 12)?;
            file.check_size("key/value heads", kv_heads.max(1), heads)?;
        }
        file.check_size("head length", head_dim, 1 << 10)?;
        let rope = file.rope(head_dim)?;
        let turned = rope.turned_dim.unwrap_or(head_dim).min(head_dim);
        Ok(Parts {
            context_length,
            head_dim,
            heads,
            kv_heads,
            ffn,
            windows: file.windows(pattern, n_layers)?,
            rope,
            local_rope: file.local_rope(head_dim, local_base)?,
            long_rope: file.long_rope(turned)?,
            ..sizes
        })
    }

    /// The sizes of a model of mixers with a state and nothing else, whose files need not say for how many positions it was
    /// trained.
    pub(crate) fn without_attention(file: &'a ModelFile<'a>) -> Result<Parts<'a>, ArchError> {
        let n_layers = file.n_layers()?;
        let dim = file.required(keys::DIM)?;
        file.check_size("embedding length", dim, 1 << 20)?;
        let vocab_size = file.vocab_size(TOKEN_EMBEDDING)?;
        let context_length = file.u32(keys::CONTEXT)?.unwrap_or(ANY_CONTEXT);
        file.check_size("context length", context_length, 1 << 30)?;
        let default_eps = if file.config().is_some() { 1e-6 } else { 1e-5 };
        let eps = file.f32(keys::EPS)?.unwrap_or(default_eps);
        file.check_positive("norm epsilon", eps)?;
        let rope = file.rope(0)?;
        Ok(Parts {
            file,
            dim,
            n_layers,
            context_length,
            eps,
            norm_change: Change::None,
            head_dim: 0,
            heads: vec![0; n_layers],
            kv_heads: vec![0; n_layers],
            ffn: vec![0; n_layers],
            vocab_size,
            windows: vec![None; n_layers],
            rope,
            local_rope: rope,
            long_rope: None,
        })
    }

    /// A decoder of these layers.
    pub fn decoder(&self, layer: impl FnMut(usize) -> Layer) -> Model {
        let is_tied = self.file.store.has_tied_embeddings();
        let vocabulary = |name| NamedMatrix::new(name, self.vocab_size, self.dim);
        Model {
            arch: self.file.arch,
            dim: self.dim,
            vocab_size: self.vocab_size,
            context_length: self.context_length,
            long_rope: self.long_rope.clone(),
            images: None,
            embedding: Embedding {
                tokens: vocabulary(TOKEN_EMBEDDING),
                scale: None,
                kinds: None,
                positions: None,
                distances: None,
                norm: None,
                of_layers: None,
            },
            layers: (0..self.n_layers).map(layer).collect(),
            norm: Some(self.norm("output_norm")),
            output: Output::Logits(Logits {
                weight: vocabulary(if is_tied { TOKEN_EMBEDDING } else { OUTPUT }),
                is_tied,
                scale: None,
                softcap: None,
            }),
            mtp: None,
        }
    }

    /// Attention with RoPE and without biases.
    pub fn attention(&self, at: usize) -> Attention {
        self.attention_of(at, self.kv_heads[at], self.head_dim)
    }

    /// The same with different heads.
    pub(crate) fn attention_of(&self, at: usize, kv_heads: u32, head_dim: u32) -> Attention {
        let heads = self.heads[at];
        let linear =
            |part: &str, rows, cols| linear(in_layer(at, &format!("attention.{part}")), rows, cols);
        let window = self.windows[at];
        Attention {
            heads,
            kv_heads,
            head_dim,
            keys_of: None,
            latent: None,
            has_gate: false,
            gate: None,
            q: linear("q", heads * head_dim, self.dim),
            k: linear("k", kv_heads * head_dim, self.dim),
            v: linear("v", kv_heads * head_dim, self.dim),
            output: linear("output", self.dim, heads * head_dim),
            qk_norm: None,
            row_norm: None,
            value_eps: None,
            rope: Some(if window.is_some() {
                self.local_rope
            } else {
                self.rope
            }),
            window,
            scale: 1.0 / (head_dim as f32).sqrt(),
            temperature: None,
            softcap: None,
            sinks: None,
        }
    }

    /// A feed-forward block with a gate.
    pub fn gated(&self, at: usize, activation: Activation) -> Gated {
        let (width, dim) = (self.ffn[at], self.dim);
        let linear =
            |part: &str, rows, cols| linear(in_layer(at, &format!("ffn.{part}")), rows, cols);
        Gated {
            width,
            activation,
            gate: linear("gate", width, dim),
            up: linear("up", width, dim),
            down: linear("down", dim, width),
        }
    }

    /// A feed-forward block without a gate and without biases.
    pub fn dense(&self, at: usize, activation: DenseActivation) -> Dense {
        let Gated {
            width, up, down, ..
        } = self.gated(at, Activation::Gelu);
        Dense {
            width,
            activation,
            up,
            down,
        }
    }

    /// The same with the biases that the file has.
    pub fn dense_with_biases_found(&self, at: usize, activation: DenseActivation) -> Dense {
        let plain = self.dense(at, activation);
        Dense {
            up: self.biased_if_found(plain.up),
            down: self.biased_if_found(plain.down),
            ..plain
        }
    }

    /// The same products with the biases that the file has.
    pub(crate) fn biased_if_found(&self, linear: Linear) -> Linear {
        let biased = linear.clone().with_bias();
        let name = biased.bias.as_ref().map(|bias| &bias.name[..]);
        match name.and_then(|name| self.file.store.tensor(name)) {
            Some(_) => biased,
            None => linear,
        }
    }

    /// A norm by the root mean square.
    pub fn norm(&self, name: impl AsRef<str>) -> Norm {
        Norm {
            kind: NormKind::Rms,
            weight: NamedVector {
                change: self.norm_change,
                ..NamedVector::new(format!("{}.weight", name.as_ref()), 1, self.dim)
            },
            bias: None,
            eps: self.eps,
        }
    }
}

/// The name of a part of a layer.
pub(crate) fn in_layer(at: usize, part: &str) -> String {
    format!("layers.{at}.{part}")
}

/// A product without a bias.
pub(crate) fn linear(module: String, rows: u32, cols: u32) -> Linear {
    Linear {
        weight: NamedMatrix::new(format!("{module}.weight"), rows, cols),
        bias: None,
    }
}

impl Linear {
    /// The same product with a bias.
    pub fn with_bias(self) -> Linear {
        let module = self.weight.name.trim_end_matches(".weight");
        let bias = NamedVector::new(format!("{module}.bias"), 1, self.weight.rows);
        Linear {
            bias: Some(bias),
            ..self
        }
    }
}

impl Attention {
    /// The same attention with a gate, whose heads lie behind those of the queries.
    pub(crate) fn with_gate(self) -> Attention {
        let q = &self.q.weight;
        Attention {
            q: Linear {
                weight: NamedMatrix::new(q.name.clone(), 2 * q.rows, q.cols),
                bias: None,
            },
            has_gate: true,
            ..self
        }
    }

    /// The same attention with biases of q, k and v.
    pub fn with_qkv_bias(self) -> Attention {
        Attention {
            q: self.q.with_bias(),
            k: self.k.with_bias(),
            v: self.v.with_bias(),
            ..self
        }
    }
}

impl Model {
    /// The same model, which reads images.
    pub(crate) fn with_images(self, images: ImageInput) -> Model {
        let images = Some(images);
        Model { images, ..self }
    }
}

impl Layer {
    /// The same layer with another mixer.
    pub(crate) fn with_mixer(self, mixer: Mixer) -> Layer {
        Layer { mixer, ..self }
    }

    /// A layer of nothing but a mixer.
    pub(crate) fn of_mixer(mixer: Mixer, norms: BlockNorms) -> Layer {
        Layer {
            mixer,
            cross: None,
            ffn: Ffn::None,
            norms: LayerNorms {
                mixer: norms,
                ffn: BlockNorms::NONE,
            },
            is_parallel: false,
            input: None,
            scale: None,
        }
    }

    /// A layer of nothing but a feed-forward block.
    pub(crate) fn of_ffn(ffn: Ffn, norms: BlockNorms) -> Layer {
        Layer {
            mixer: Mixer::None,
            cross: None,
            ffn,
            norms: LayerNorms {
                mixer: BlockNorms::NONE,
                ffn: norms,
            },
            is_parallel: false,
            input: None,
            scale: None,
        }
    }

    /// A layer of attention and a feed-forward block with a gate.
    pub fn gated(attention: Attention, ffn: Gated, norms: LayerNorms) -> Layer {
        Layer::new(attention, Ffn::Gated(ffn), norms)
    }

    /// A layer of attention and a feed-forward block.
    pub fn new(attention: Attention, ffn: Ffn, norms: LayerNorms) -> Layer {
        Layer {
            mixer: Mixer::Attention(attention),
            cross: None,
            ffn,
            norms,
            is_parallel: false,
            input: None,
            scale: None,
        }
    }

    /// The same layer, whose blocks read the same.
    pub(crate) fn parallel(self) -> Layer {
        Layer {
            is_parallel: true,
            ..self
        }
    }
}
