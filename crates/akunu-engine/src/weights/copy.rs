//! Weights that are not bound where they lie.

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
