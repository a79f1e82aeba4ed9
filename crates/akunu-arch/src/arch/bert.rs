//! BERT: an encoder with learned positions and a norm after each block.

use super::whisper;
use crate::descriptor::{ArchDescriptor, Role};

/// MiniLM and its family.
pub const ARCH: ArchDescriptor = ArchDescriptor {
    name: "bert",
    model_types: &["bert"],
    role: Role::Encoder,
    has_post_attention_norm: true,
    has_post_ffn_norm: true,
    ..whisper::ARCH
};
