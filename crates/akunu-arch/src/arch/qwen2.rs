//! Qwen 2 and 2.5: Llama with a bias on q, k and v.

use super::llama;
use crate::descriptor::{ArchDescriptor, RopePairing, WindowPattern};

/// Bias on q, k, v; no QK norm. The window of its config is off in every released model.
pub const ARCH: ArchDescriptor = ArchDescriptor {
    name: "qwen2",
    model_types: &["qwen2"],
    rope: Some(RopePairing::SplitHalves),
    has_qkv_bias: true,
    window: WindowPattern::None,
    ..llama::ARCH
};
