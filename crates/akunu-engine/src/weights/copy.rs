//! Weights that are not bound where they lie.

use std::path::Path;

use akunu_gguf::{FloatTensor, WeightView};
use akunu_program::{Device, Slice};

use crate::error::EngineError;

/// Offsets of bound weights are multiples of this; others are copied to a buffer of their own.
pub(super) const BINDING_ALIGNMENT: usize = 16;

/// A buffer with these bytes. It is read-only, as the file is: a device may lay it out as it likes.
pub(super) fn copy(
    bytes: &[u8],
    label: &str,
    device: &mut dyn Device,
) -> Result<Slice, EngineError> {
    Ok(device.keep(bytes, label)?.into())
}

/// The blocks that 4-bit floats become.
pub(super) fn blocks(
    float: &FloatTensor,
    view: &WeightView,
    path: &Path,
) -> Result<Vec<u8>, EngineError> {
    float.blocks().map_err(|error| EngineError::Weight {
        path: path.to_path_buf(),
        name: view.tensor.to_string(),
        why: error.to_string(),
    })
}
