//! ModernBERT: norms before each block, rotary positions, a gate, windows, and no biases.

use super::nomic_bert;
use super::prelude::*;

/// ModernBERT and what was trained from it: gte-modernbert and its reranker, nomic's modernbert-embed, granite-embedding r2.
pub const ARCH: Architecture = Architecture {
    name: "modern-bert",
    model_types: &["modernbert"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

const LOCAL_BASE: f32 = 10_000.0;

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    file.only("hidden_activation", "gelu")?;
    nomic_bert::refuse_variants(file)?;
    if let Some(config) = file.config() {
        config.required_u32("local_attention")?;
    }
    let pattern = WindowPattern::AllButFirst { period: 3 };
    let parts = Parts::read(file, pattern, Some(LOCAL_BASE))?;
    let embedding = parts.text_embedding(0, parts.layer_norm("token_embedding_norm"));
    let layer = |at| {
        let ffn = parts.fused_gate(at, Activation::GeluErf);
        Layer::gated(parts.fused_attention(at), ffn, norms(&parts, at))
    };
    let mut model = parts.encoder(embedding, layer, parts.gelu_classifier()?);
    model.norm = Some(parts.layer_norm("output_norm"));
    Ok(model)
}

/// Norms of what the blocks read. The first block reads what is normalised already.
fn norms(parts: &Parts, at: usize) -> LayerNorms {
    let of = |name| BlockNorms {
        input: Some(parts.layer_norm_in(at, name)),
        ..BlockNorms::NONE
    };
    LayerNorms {
        mixer: match at {
            0 => BlockNorms::NONE,
            _ => of("attention_norm"),
        },
        ffn: of("ffn_norm"),
    }
}
