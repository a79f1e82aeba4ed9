//! Learned biases by bucket of distances, laid out once by distance: what attention adds to its scores.

use std::path::Path;

use akunu_arch::ModelConfig;
use akunu_gguf::WeightStore;
use akunu_program::{Device, DistanceBias};

use crate::error::EngineError;
use crate::weights::read_vector;

/// The biases of a model that has them. [`ModelConfig::check_weights`] has passed.
pub(super) fn bind(
    store: &WeightStore,
    config: &ModelConfig,
    path: &Path,
    device: &mut dyn Device,
) -> Result<Option<DistanceBias>, EngineError> {
    let (Some(relative), Some(view)) = (config.arch.relative, store.tensor("relative_bias.weight"))
    else {
        return Ok(None);
    };
    let table = relative.by_distance(&read_vector(&view, path)?, config.n_heads);
    let table = device.keep(bytemuck::cast_slice(&table), "biases by distance")?;
    Ok(Some(DistanceBias {
        table: table.into(),
        reach: relative.max_distance,
    }))
}
