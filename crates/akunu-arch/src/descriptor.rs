//! The fields in which architectures differ.

use crate::relative::RelativePositions;

/// The activation of the feed-forward block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// `silu(gate) * up`.
    SiluGate,
    /// `gelu(gate) * up`, by the tanh formula.
    GeluGate,
    /// `gelu(gate) * up`, by the error function.
    GeluErfGate,
    /// `gelu(up)`, by the error function; there is no gate.
    Gelu,
}

impl Activation {
    /// Whether the block has a gate projection.
    pub const fn is_gated(self) -> bool {
        !matches!(self, Activation::Gelu)
    }
}

/// What the head of a classifier makes of the vector of a text before it scores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassifierHead {
    /// `tanh(W v + b)`: BERT's pooler.
    Tanh,
    /// `norm(gelu(W v))`, by the error function, with or without a bias in the product.
    GeluNorm,
}

/// The kind of normalisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Norm {
    /// Root mean square, no mean, no bias.
    Rms,
    /// Mean and variance.
    Layer,
}

/// Which elements of a head RoPE rotates together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RopePairing {
    /// Elements 2d and 2d + 1.
    Interleaved,
    /// Elements d and d + head_dim / 2.
    SplitHalves,
}

/// Which layers have a sliding window, in a model that has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowPattern {
    /// No layer does.
    None,
    /// Every layer does.
    All,
    /// Of `period` layers in a row, all but the last.
    AllButEvery {
        /// Layers in a row.
        period: u32,
    },
    /// Of `period` layers in a row, all but the first.
    AllButFirst {
        /// Layers in a row.
        period: u32,
    },
}

impl WindowPattern {
    /// Whether this layer has the window.
    pub const fn is_windowed(self, layer: u32) -> bool {
        match self {
            WindowPattern::None => false,
            WindowPattern::All => true,
            WindowPattern::AllButEvery { period } => !(layer + 1).is_multiple_of(period),
            WindowPattern::AllButFirst { period } => !layer.is_multiple_of(period),
        }
    }

    /// The same layer of every `period` layers without a window as before: the last, unless it was the first.
    pub const fn with_period(self, period: u32) -> WindowPattern {
        match self {
            WindowPattern::AllButFirst { .. } => WindowPattern::AllButFirst { period },
            _ => WindowPattern::AllButEvery { period },
        }
    }
}

/// What a model of this kind is run for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Predicts the next token.
    Decoder,
    /// Turns text into a vector.
    Encoder,
    /// Turns one sequence into another.
    EncoderDecoder,
}

/// How an architecture differs from the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArchDescriptor {
    /// The name in GGUF's `general.architecture`.
    pub name: &'static str,
    /// The names in `model_type` of `config.json`.
    pub model_types: &'static [&'static str],
    /// What it is run for.
    pub role: Role,
    /// The feed-forward activation.
    pub activation: Activation,
    /// The norm of every layer.
    pub norm: Norm,
    /// Whether the norms have a bias.
    pub has_norm_bias: bool,
    /// Whether a block normalises what it reads, and the model its result. Otherwise a block normalises its sum.
    pub norms_inputs: bool,
    /// Whether safetensors hold `w` where the model multiplies by `1 + w`. GGUF holds the sum.
    pub norm_adds_one: bool,
    /// RoPE pairing of the weights in a GGUF file; `None` for a model without RoPE. Safetensors always
    /// have split halves: converters permute the weights of those that are interleaved here.
    pub rope: Option<RopePairing>,
    /// The entry of the first position in a table of learned positions.
    pub first_position: u32,
    /// Learned biases of the attention scores by the distance of query and key.
    pub relative: Option<RelativePositions>,
    /// Whether the gate and the up projection are one matrix, the rows of the gate first.
    pub has_fused_gate: bool,
    /// Whether q and k are normalised head by head before RoPE.
    pub has_qk_norm: bool,
    /// Whether q, k and v have a bias.
    pub has_qkv_bias: bool,
    /// Whether every linear layer has a bias.
    pub has_linear_bias: bool,
    /// Whether the attention's output is normalised before it is added.
    pub has_post_attention_norm: bool,
    /// Whether the feed-forward output is normalised before it is added.
    pub has_post_ffn_norm: bool,
    /// Whether embeddings are multiplied by `sqrt(dim)`.
    pub scales_embedding: bool,
    /// The number of layers of the one size whose attention scale comes from the model's width and not
    /// from the head's. GGUF does not say so otherwise; `config.json` does.
    pub width_scaled_layers: Option<u32>,
    /// Whether attention scores and logits may be soft-capped.
    pub has_softcap: bool,
    /// The head of a classifier that was trained from it.
    pub classifier_head: ClassifierHead,
    /// Which layers have a sliding window, if the model has one.
    pub window: WindowPattern,
    /// RoPE base of windowed layers, where it differs from that of the others.
    pub window_rope_base: Option<f32>,
}
