//! Qwen 3.5 with experts: Qwen 3.5 whose feed-forward blocks are mixtures, with an expert of all tokens that has a gate.

use super::prelude::*;
use super::qwen35::{Mixers, parts, with_images};

/// Qwen3.5-35B-A3B, 3.6-35B-A3B, 122B-A10B and 397B.
pub const ARCH: Architecture = Architecture {
    name: "qwen35moe",
    model_types: &["qwen3_5_moe", "qwen3_5_moe_text"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

pub(super) const ROUTING: Routing = Routing {
    gating: Gating::Softmax,
    normalise: true,
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let parts = parts(file)?;
    let experts = ExpertParts::read(&parts, ROUTING)?;
    let mixers = Mixers::read(&parts)?;
    let decoder = parts.with_mtp(parts.decoder(|at| {
        let ffn = experts.ffn(at, |experts| experts.with_shared_gate(at, parts.dim));
        mixers.layer(&parts, at, ffn)
    }));
    with_images(file, decoder)
}
