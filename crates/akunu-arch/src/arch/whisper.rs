//! Whisper: speech to text, encoder and decoder.

use super::llama;
use crate::descriptor::{Activation, ArchDescriptor, Norm, Role, WindowPattern};

/// Layer norms and biases everywhere, no gate, no RoPE.
pub const ARCH: ArchDescriptor = ArchDescriptor {
    name: "whisper",
    model_types: &["whisper"],
    role: Role::EncoderDecoder,
    activation: Activation::Gelu,
    norm: Norm::Layer,
    has_norm_bias: true,
    rope: None,
    has_qkv_bias: true,
    has_linear_bias: true,
    window: WindowPattern::None,
    ..llama::ARCH
};
