//! ERNIE 4.5 with experts: Llama with experts that are chosen with a bias, after some layers without.

use super::prelude::*;

/// ERNIE-4.5-21B-A3B and 300B-A47B.
pub const ARCH: Architecture = Architecture {
    name: "ernie4_5-moe",
    model_types: &["ernie4_5_moe"],
    pairing: Pairing::Interleaved,
    read: Read::Text(model),
};

const ROUTING: Routing = Routing {
    gating: Gating::Softmax,
    normalise: true,
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    file.never(&["use_bias"])?;
    let parts = Parts::read(file, WindowPattern::None, None)?;
    let experts = ExpertParts::read(&parts, ROUTING)?;
    Ok(parts.decoder(|at| {
        let plain = parts.attention(at);
        let attention = Attention {
            // Folders have its weights interleaved too.
            rope: plain.rope.map(Rope::interleaved),
            ..plain
        };
        let ffn = experts.ffn(at, |experts| experts.with_selection_bias(at));
        Layer::new(attention, ffn, parts.input_norms(at))
    }))
}
