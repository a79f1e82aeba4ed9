//! GLM 4 of 2025: GLM 4 with norms of the results of the blocks as well.

use super::chatglm;
use super::prelude::*;

/// GLM-4-9B-0414, GLM-4-32B-0414 and GLM-Z1.
pub const ARCH: Architecture = Architecture {
    name: "glm4",
    model_types: &["glm4"],
    pairing: Pairing::Interleaved,
    read: Read::Text(|file| chatglm::model(file, |parts, at| parts.sandwich_norms(at))),
};
