//! Learned biases by bucket of distances, laid out once by distance: what attention adds to its scores.

use std::path::Path;

use akunu_arch::Model;
use akunu_gguf::WeightStore;
use akunu_program::{Device, DistanceBias};

use crate::error::EngineError;
use crate::weights::read_vector;

/// The biases of a model that has them. [`Model::check_weights`] has passed.
pub(super) fn bind(
    store: &WeightStore,
    model: &Model,
    path: &Path,
    device: &mut dyn Device,
) -> Result<Option<DistanceBias>, EngineError> {
    let distances = model.embedding.distances.as_ref();
    let heads = model.attention().map(|attention| attention.heads).max();
    let (Some(distances), Some(heads)) = (distances, heads) else {
        return Ok(None);
    };
    let Some(view) = store.tensor(&distances.weight.name) else {
        return Ok(None);
    };
    let buckets = distances.buckets;
    let table = buckets.by_distance(&read_vector(&view, path)?, heads);
    let table = device.keep(bytemuck::cast_slice(&table), "biases by distance")?;
    Ok(Some(DistanceBias {
        table: table.into(),
        reach: buckets.max_distance,
    }))
}
