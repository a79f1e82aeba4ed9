//! Command R7B: both blocks of a layer read the same norm; layers with a window have RoPE, and those without have none.

use super::prelude::*;

/// Command R7B and Command A.
pub const ARCH: Architecture = Architecture {
    name: "cohere2",
    model_types: &["cohere2"],
    pairing: Pairing::Interleaved,
    read: Read::Text(model),
};

const LOGITS: Key = Key::same(&["logit_scale"]);
const RMS_EPS: Key = Key::new(&["attention.layer_norm_rms_epsilon"], &["rms_norm_eps"]);

/// Of so many layers the last has no window.
pub(super) const PERIOD: u32 = 4;

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let parts = Parts::read(file, WindowPattern::AllButEvery { period: PERIOD }, None)?;
    decoder(
        &parts,
        |_| false,
        |at| Ffn::Gated(parts.gated(at, Activation::Silu)),
    )
}

/// A decoder with these feed-forward blocks. Layers without a window turn their heads only where `turns` says so.
pub(super) fn decoder(
    parts: &Parts,
    turns: impl Fn(usize) -> bool,
    ffn: impl Fn(usize) -> Ffn,
) -> Result<Model, ArchError> {
    let rms = parts.file.f32(RMS_EPS)?.filter(|&eps| eps != 0.0);
    let kind = match rms {
        Some(_) => NormKind::Rms,
        None => NormKind::Layer,
    };
    let mut model = parts.decoder(|at| {
        let plain = parts.attention(at);
        let has_rope = plain.window.is_some() || turns(at);
        let attention = Attention {
            // Folders have its weights interleaved too.
            rope: plain.rope.filter(|_| has_rope).map(Rope::interleaved),
            ..plain
        };
        Layer::new(attention, ffn(at), parts.parallel_norms(at, kind)).parallel()
    });
    model.norm = model.norm.map(|norm| Norm { kind, ..norm });
    if let Output::Logits(logits) = &mut model.output {
        logits.scale = parts.file.f32(LOGITS)?;
    }
    Ok(model)
}
