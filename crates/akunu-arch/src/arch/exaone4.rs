//! EXAONE 4: norms of the results of the blocks instead of their inputs, norms of heads, and in models with windows no RoPE where there
//! is none.

use super::prelude::*;

/// EXAONE 4.0 1.2B and 32B.
pub const ARCH: Architecture = Architecture {
    name: "exaone4",
    model_types: &["exaone4"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

/// Of so many layers the last has no window.
const PERIOD: u32 = 4;

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let parts = Parts::read(file, WindowPattern::AllButEvery { period: PERIOD }, None)?;
    let has_windows = (0..parts.n_layers).any(|at| parts.attention(at).window.is_some());
    Ok(parts.decoder(|at| {
        let plain = parts.attention(at);
        let turns = !has_windows || plain.window.is_some();
        let attention = Attention {
            qk_norm: Some(parts.head_norms(at)),
            rope: plain.rope.filter(|_| turns),
            ..plain
        };
        let ffn = parts.gated(at, Activation::Silu);
        Layer::gated(attention, ffn, parts.output_norms(at))
    }))
}
