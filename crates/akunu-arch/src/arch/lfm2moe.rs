//! LFM2 with experts: LFM2 whose feed-forward blocks are mixtures after the first layers.

use super::lfm2::{Mixers, output_norm};
use super::prelude::*;

/// LFM2-8B-A1B and 24B-A2B.
pub const ARCH: Architecture = Architecture {
    name: "lfm2moe",
    model_types: &["lfm2_moe"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

const ROUTING: Routing = Routing {
    gating: Gating::Sigmoid,
    normalise: true,
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let parts = Parts::read(file, WindowPattern::None, None)?;
    let experts = ExpertParts::read(&parts, ROUTING)?;
    let mixers = Mixers::read(&parts)?;
    let model = parts.decoder(|at| {
        let ffn = experts.ffn(at, |experts| experts.with_selection_bias(at));
        mixers.layer(&parts, at, ffn)
    });
    Ok(output_norm(&parts, model))
}
