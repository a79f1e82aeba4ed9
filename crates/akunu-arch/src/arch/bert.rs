//! BERT: an encoder with learned positions and a norm after each block.

use super::whisper;
use crate::descriptor::{ArchDescriptor, Role};

/// BERT itself, MiniLM, BGE, E5, GTE.
pub const ARCH: ArchDescriptor = ArchDescriptor {
    name: "bert",
    model_types: &["bert"],
    role: Role::Encoder,
    norms_inputs: false,
    ..whisper::ARCH
};
