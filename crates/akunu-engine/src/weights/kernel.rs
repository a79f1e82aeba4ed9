//! The kernel of a convolution over patches, as the matrix of a product.

use std::path::Path;

use akunu_arch::{Frames, NamedMatrix, PatchKernel};
use akunu_gguf::WeightStore;
use akunu_program::{Device, Matrix, Storage, VECTOR};

use super::copy::copy;
use super::tensor::{read_vector, view};
use crate::error::EngineError;

/// Columns are padded with zeros to a multiple of this, so that rows are whole vectors on every device. A patch of 14 × 14
/// pixels has 588 numbers.
const COLUMNS: usize = 32;

/// A copy in single precision, (rows, columns and zeros), of the sum of the kernels of all frames.
pub(super) fn matrix(
    store: &WeightStore,
    weight: &NamedMatrix,
    kernel: PatchKernel,
    path: &Path,
    device: &mut dyn Device,
) -> Result<Matrix, EngineError> {
    let (n_rows, cols) = (weight.rows as usize, weight.cols as usize);
    let padded = cols.next_multiple_of(COLUMNS);
    let mut rows = vec![0f32; n_rows * padded];
    for name in weight.tensors() {
        let values = read_vector(&view(store, &name), path)?;
        let own = values.chunks_exact(values.len() / n_rows);
        for (row, values) in rows.chunks_exact_mut(padded).zip(own) {
            match kernel.by_pixels {
                true => add_pixels(row, values, kernel),
                false => add_frames(row, values, kernel),
            }
        }
    }
    Ok(Matrix {
        place: copy(bytemuck::cast_slice(&rows), &weight.name, device)?,
        dtype: VECTOR,
        rows: weight.rows,
        cols: padded as u32,
        storage: Storage::Rows,
    })
}

/// Adds the kernels of an output, (channels, frames, side, side), to its row, (channels, side, side).
fn add_frames(row: &mut [f32], values: &[f32], kernel: PatchKernel) {
    let plane = (kernel.side * kernel.side) as usize;
    let n_frames = match kernel.frames {
        Frames::One | Frames::Apart(_) => 1,
        Frames::Within(n) => n as usize,
    };
    let channels = values.chunks_exact(n_frames * plane);
    for (to, frames) in row.chunks_exact_mut(plane).zip(channels) {
        for frame in frames.chunks_exact(plane) {
            to.iter_mut().zip(frame).for_each(|(sum, x)| *sum += x);
        }
    }
}

/// Adds the kernel of an output, (side, side, channels), to its row, (channels, side, side).
fn add_pixels(row: &mut [f32], values: &[f32], kernel: PatchKernel) {
    let (plane, channels) = (
        (kernel.side * kernel.side) as usize,
        kernel.channels as usize,
    );
    for (pixel, numbers) in values.chunks_exact(channels).enumerate() {
        for (channel, number) in numbers.iter().enumerate() {
            row[channel * plane + pixel] += number;
        }
    }
}
