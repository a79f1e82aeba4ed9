//! Granite 4 hybrid: Granite whose layers are Mamba-2, all but a few with attention, and whose positions may not turn.

use super::granite;
use super::granitemoe::ROUTING;
use super::prelude::*;

/// Granite 4 h-micro, h-tiny and h-small.
pub const ARCH: Architecture = Architecture {
    name: "granitehybrid",
    model_types: &["granitemoehybrid"],
    pairing: Pairing::Interleaved,
    read: Read::Text(model),
};

/// GGUF files say here whether there are rotary positions.
const HAS_ROPE: Key = Key::new(&["rope.scaling.finetuned"], &[]);
/// Folders say what kind of positions there are.
const POSITIONS: &str = "position_embedding_type";

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    file.never(&["mamba_proj_bias", "attention_bias"])?;
    let (parts, factors) = granite::parts(file)?;
    let has_experts = file.has_experts()?;
    let has_rope = match file.config() {
        Some(config) => config.string(POSITIONS)? == Some("rope"),
        None => file.bool(HAS_ROPE)?.unwrap_or(true),
    };
    let experts = match has_experts {
        true => Some(ExpertParts::read(&parts, ROUTING)?),
        false => None,
    };
    let has_attention = parts.attention_layers(|at| Ok(parts.kv_heads[at] > 0))?;
    let sizes = parts.ssd_sizes()?;
    // Without experts, folders call the feed-forward block that of all tokens.
    let width = file.u32(Key::new(&[], &["shared_intermediate_size"]))?;
    Ok(factors.decoder(&parts, |at| {
        let ffn = match (&experts, width) {
            (Some(experts), _) => experts.ffn(at, |experts| experts),
            (None, Some(width)) => Ffn::Gated(parts.shared(at, width)),
            (None, None) => Ffn::Gated(parts.gated(at, Activation::Silu)),
        };
        let plain = factors.attention(&parts, at);
        let attention = Attention {
            rope: plain.rope.filter(|_| has_rope),
            ..plain
        };
        let layer = Layer::new(attention, ffn, parts.input_norms(at));
        match has_attention[at] {
            true => layer,
            false => layer.with_mixer(Mixer::Ssd(parts.ssd(at, &sizes))),
        }
    }))
}
