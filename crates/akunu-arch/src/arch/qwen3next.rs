//! Qwen3-Next: the layers of Qwen 3.5 with experts, whose first products lie merged in their files.

use super::prelude::*;
use super::qwen35::{Mixers, parts};
use super::qwen35moe::ROUTING;

/// Qwen3-Next-80B-A3B and Qwen3-Coder-Next.
pub const ARCH: Architecture = Architecture {
    name: "qwen3next",
    model_types: &["qwen3_next"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let parts = parts(file)?;
    let experts = ExpertParts::read(&parts, ROUTING)?;
    let mixers = Mixers::read(&parts)?;
    Ok(parts.with_mtp(parts.decoder(|at| {
        let ffn = experts.ffn(at, |experts| experts.with_shared_gate(at, parts.dim));
        let layer = mixers.layer(&parts, at, ffn);
        match layer.mixer {
            Mixer::DeltaNet(net) => Layer {
                mixer: Mixer::DeltaNet(net.with_merged_inputs(&parts, at)),
                ..layer
            },
            _ => layer,
        }
    })))
}
