//! HunYuan: Llama with norms of queries and keys after they turn.

use super::prelude::*;

/// HunYuan 0.5B to 7B.
pub const ARCH: Architecture = Architecture {
    name: "hunyuan-dense",
    model_types: &["hunyuan_v1_dense"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let parts = Parts::read(file, WindowPattern::None, None)?;
    Ok(parts.decoder(|at| {
        let ffn = parts.gated(at, Activation::Silu);
        Layer::gated(attention(&parts, at), ffn, parts.input_norms(at))
    }))
}

/// Attention of its layers.
pub(super) fn attention(parts: &Parts, at: usize) -> Attention {
    Attention {
        qk_norm: Some(parts.turned_head_norms(at)),
        ..parts.attention(at)
    }
}
