//! Weights that become another format while they are loaded.

use std::path::Path;

use akunu_gguf::{Converted, Repacked, WeightView};
use akunu_program::{Device, Slice, Storage};

use super::copy::copy;
use super::mlx;
use crate::error::EngineError;

/// A weight in the form that it becomes.
pub(super) fn repack(
    converted: &Converted,
    view: &WeightView,
    path: &Path,
) -> Result<Repacked, EngineError> {
    converted.repack().map_err(|error| EngineError::Weight {
        path: path.to_path_buf(),
        name: view.tensor.to_string(),
        why: error.to_string(),
    })
}

/// A buffer with it.
pub(super) fn bound(
    weight: &Repacked,
    label: &str,
    device: &mut dyn Device,
) -> Result<(Slice, Storage), EngineError> {
    match weight {
        Repacked::Blocks(blocks) => Ok((copy(blocks, label, device)?, Storage::Rows)),
        Repacked::Affine(affine) => mlx::copied(&affine.tensor(), label, device),
    }
}
