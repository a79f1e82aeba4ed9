//! HunYuan with experts: HunYuan whose feed-forward blocks are mixtures beside one that all tokens share.

use super::hunyuan_dense;
use super::prelude::*;

/// HunYuan-A13B.
pub const ARCH: Architecture = Architecture {
    name: "hunyuan-moe",
    model_types: &["hunyuan_v1_moe"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

const ROUTING: Routing = Routing {
    gating: Gating::Softmax,
    normalise: true,
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let parts = Parts::read(file, WindowPattern::None, None)?;
    let experts = ExpertParts::read(&parts, ROUTING)?.with_shared();
    Ok(parts.decoder(|at| {
        let ffn = experts.ffn(at, |experts| experts);
        let attention = hunyuan_dense::attention(&parts, at);
        Layer::new(attention, ffn, parts.input_norms(at))
    }))
}
