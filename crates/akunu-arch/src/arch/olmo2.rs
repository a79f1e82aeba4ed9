//! OLMo 2 and 3: norms of the results of the blocks instead of their inputs, and norms of all queries and all keys of a token.
//! Layers of OLMo 3 that have a window turn without YaRN.

use super::prelude::*;

/// OLMo 2 and OLMo 3.
pub const ARCH: Architecture = Architecture {
    name: "olmo2",
    model_types: &["olmo2", "olmo3"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

/// Of so many layers the last has no window.
const PERIOD: u32 = 4;

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let parts = Parts::read(file, WindowPattern::AllButEvery { period: PERIOD }, None)?;
    Ok(parts.decoder(|at| {
        let plain = parts.attention(at);
        let attention = Attention {
            row_norm: Some(parts.row_norms(at)),
            rope: plain.rope.map(|rope| match plain.window {
                Some(_) => rope.unscaled(),
                None => rope,
            }),
            ..plain
        };
        let ffn = parts.gated(at, Activation::Silu);
        Layer::gated(attention, ffn, parts.output_norms(at))
    }))
}
