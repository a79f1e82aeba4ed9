//! RoBERTa: BERT whose first positions are those of padding. Converted to GGUF it is `bert`, without them.

use super::bert;
use super::prelude::*;

/// RoBERTa, XLM-RoBERTa and CamemBERT: bge-m3, multilingual-e5, bge-reranker-v2-m3. GGUF has no such architecture.
pub const ARCH: Architecture = Architecture {
    name: "xlm-roberta",
    model_types: &["xlm-roberta", "roberta", "camembert"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

/// Positions are counted from the one after that of this token.
const PADDING: Key = Key::new(&[], &["pad_token_id"]);
const USUAL_PADDING: u32 = 1;

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let padding = file.u32(PADDING)?.unwrap_or(USUAL_PADDING);
    file.check_size(
        "entries before the first position",
        padding.saturating_add(1),
        1 << 10,
    )?;
    bert::model(file, padding + 1)
}
