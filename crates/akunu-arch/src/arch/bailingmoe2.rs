//! Ling 2: heads of which a part turns, experts in groups that are chosen by sigmoids and a bias, after some layers without.

use super::prelude::*;

/// Ling-mini-2.0, Ling-flash-2.0 and the Rings.
pub const ARCH: Architecture = Architecture {
    name: "bailingmoe2",
    model_types: &["bailing_moe", "bailing_moe_v2"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

const ROUTING: Routing = Routing {
    gating: Gating::Softmax,
    normalise: false,
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    file.never(&["norm_head", "use_bias", "use_qkv_bias"])?;
    let parts = Parts::read(file, WindowPattern::None, None)?;
    let experts = ExpertParts::read(&parts, ROUTING)?;
    Ok(parts.decoder(|at| {
        let attention = Attention {
            qk_norm: parts.head_norms_found(at),
            ..parts.fused_attention(at)
        };
        let ffn = experts.ffn_with_bias_found(at);
        Layer::new(attention, ffn, parts.input_norms(at))
    }))
}
