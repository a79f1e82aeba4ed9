//! The kernel of a convolution over patches, as the matrix of a product.

use std::path::Path;

use akunu_arch::NamedMatrix;
use akunu_gguf::WeightStore;
use akunu_program::{Device, Matrix, Storage, VECTOR};

use super::copy::copy;
use super::tensor::{read_vector, view};
use crate::error::EngineError;

/// Columns are padded with zeros to a multiple of this, so that rows are whole vectors on every device. A patch of 14 × 14
/// pixels has 588 numbers.
const COLUMNS: usize = 32;

/// A copy in single precision, (rows, columns and zeros).
pub(super) fn matrix(
    store: &WeightStore,
    weight: &NamedMatrix,
    path: &Path,
    device: &mut dyn Device,
) -> Result<Matrix, EngineError> {
    let values = read_vector(&view(store, &weight.name), path)?;
    let cols = weight.cols as usize;
    let padded = cols.next_multiple_of(COLUMNS);
    let mut rows = vec![0f32; weight.rows as usize * padded];
    for (row, values) in rows.chunks_exact_mut(padded).zip(values.chunks_exact(cols)) {
        row[..cols].copy_from_slice(values);
    }
    Ok(Matrix {
        place: copy(bytemuck::cast_slice(&rows), &weight.name, device)?,
        dtype: VECTOR,
        rows: weight.rows,
        cols: padded as u32,
        storage: Storage::Rows,
    })
}
