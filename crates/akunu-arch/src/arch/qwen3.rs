//! Qwen 3: Llama with a norm on each head of q and k.

use super::qwen2;
use crate::descriptor::ArchDescriptor;

/// QK norm; no bias.
pub const ARCH: ArchDescriptor = ArchDescriptor {
    name: "qwen3",
    model_types: &["qwen3"],
    has_qkv_bias: false,
    has_qk_norm: true,
    ..qwen2::ARCH
};
