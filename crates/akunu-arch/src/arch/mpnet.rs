//! MPNet: BERT with relative positions besides the learned ones, and without token types.

use super::bert;
use super::prelude::*;

/// all-mpnet-base-v2 and its like. GGUF has no such architecture.
pub const ARCH: Architecture = Architecture {
    name: "mpnet",
    model_types: &["mpnet"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

/// The first two entries of its positions are for padding.
const FIRST_POSITION: u32 = 2;
const BUCKETS: RelativePositions = RelativePositions {
    n_buckets: 32,
    max_distance: 128,
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let key = "relative_attention_num_buckets";
    if let Some(config) = file.config()
        && let Some(found) = config.u32(key)?.filter(|&found| found != BUCKETS.n_buckets)
    {
        return Err(file.unsupported(format!("`{key}` = {found}")));
    }
    let mut model = bert::model(file, FIRST_POSITION)?;
    let heads = model.attention().map(|attention| attention.heads).max();
    model.embedding.distances = heads.map(|heads| Distances {
        buckets: BUCKETS,
        weight: NamedVector::new("relative_bias.weight", BUCKETS.n_buckets, heads),
    });
    Ok(model)
}
