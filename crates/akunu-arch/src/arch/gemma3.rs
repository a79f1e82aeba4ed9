//! Gemma 3: QK norm instead of soft caps, five windowed layers to a global one.

use super::gemma2;
use crate::descriptor::{ArchDescriptor, WindowPattern};

/// Windowed layers have a RoPE base of their own and no position scaling.
pub const ARCH: ArchDescriptor = ArchDescriptor {
    name: "gemma3",
    model_types: &["gemma3", "gemma3_text"],
    has_qk_norm: true,
    width_scaled_layers: Some(62),
    has_softcap: false,
    window: WindowPattern::AllButEvery { period: 6 },
    window_rope_base: Some(10_000.0),
    ..gemma2::ARCH
};
