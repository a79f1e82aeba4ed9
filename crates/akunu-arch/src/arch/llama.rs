//! Llama 2 and 3, Mistral, SmolLM2, TinyLlama and many others.

use crate::descriptor::{
    Activation, ArchDescriptor, ClassifierHead, Norm, Role, RopePairing, WindowPattern,
};

/// The plain decoder; the others are described by how they differ from it.
pub const ARCH: ArchDescriptor = ArchDescriptor {
    name: "llama",
    model_types: &["llama", "mistral"],
    role: Role::Decoder,
    activation: Activation::SiluGate,
    norm: Norm::Rms,
    has_norm_bias: false,
    norms_inputs: true,
    norm_adds_one: false,
    rope: Some(RopePairing::Interleaved),
    first_position: 0,
    relative: None,
    has_fused_gate: false,
    has_qk_norm: false,
    has_qkv_bias: false,
    has_linear_bias: false,
    has_post_attention_norm: false,
    has_post_ffn_norm: false,
    scales_embedding: false,
    width_scaled_layers: None,
    has_softcap: false,
    classifier_head: ClassifierHead::Tanh,
    window: WindowPattern::All,
    window_rope_base: None,
};
