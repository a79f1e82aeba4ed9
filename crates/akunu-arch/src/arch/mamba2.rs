//! Mamba-2: layers of nothing but a mixer with a state.

use super::prelude::*;

/// Mamba-2 130M to 2.7B, and Mamba-Codestral.
pub const ARCH: Architecture = Architecture {
    name: "mamba2",
    model_types: &["mamba2"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    file.never(&["use_bias"])?;
    let parts = Parts::without_attention(file)?;
    let sizes = parts.ssd_sizes()?;
    Ok(parts.decoder(|at| {
        let mixer = Mixer::Ssd(parts.ssd(at, &sizes));
        Layer::of_mixer(mixer, parts.only_norm(at))
    }))
}
