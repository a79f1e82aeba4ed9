//! Weights whose numbers do not lie one behind the other in a tensor of the file. They are copied.

use std::path::Path;

use akunu_arch::{NamedMatrix, NamedVector};
use akunu_gguf::quant::{self, QuantError};
use akunu_gguf::{Data, Repacked, WeightStore, WeightView};
use akunu_program::{Device, Matrix, Slice, Storage, VECTOR};
use akunu_types::DType;

use super::converted::repack;
use super::copy::copy;
use super::tensor::{check_type, read_vector, view};
use crate::error::EngineError;

/// A matrix that has some rows of a tensor here and there, or whose tensor is transposed.
pub(super) fn matrix(
    view: &WeightView,
    weight: &NamedMatrix,
    path: &Path,
    device: &mut dyn Device,
) -> Result<Matrix, EngineError> {
    check_type(view, path)?;
    let converted;
    let bytes = match &view.data {
        Data::Plain(span) => span.bytes,
        Data::Converted(weight) => match repack(weight, view, path)? {
            Repacked::Blocks(blocks) => {
                converted = blocks;
                &converted
            }
            Repacked::Affine(_) => return Err(refused(view, path)),
        },
        Data::Mlx(_) => return Err(refused(view, path)),
    };
    let numbers = view.dtype.block_len() == 1;
    if weight.is_transposed && !weight.pieces.is_empty() {
        return transposed_pieces(view, bytes, weight, (path, device));
    }
    if weight.is_transposed && !numbers {
        return Err(refused(view, path));
    }
    let mut gathered = match weight.is_transposed {
        true => transposed(bytes, weight, view.dtype.block_bytes()),
        false => {
            let row_bytes = view.dtype.bytes_of(weight.cols as usize).unwrap_or(0);
            match weight.pieces.is_empty() {
                true => every(bytes, weight, row_bytes),
                false => pieces(bytes, &weight.pieces, row_bytes),
            }
        }
    };
    if !weight.factors.is_empty() {
        let row_numbers = weight.cols as usize;
        multiply(&mut gathered, &weight.factors, (view.dtype, row_numbers))
            .ok_or_else(|| cannot_multiply(view, path))?;
    }
    Ok(Matrix {
        place: copy(&gathered, &weight.name, device)?,
        dtype: view.dtype,
        rows: weight.rows,
        cols: weight.cols,
        storage: Storage::Rows,
    })
}

/// Multiplies pieces of so many rows by their factors; `None` for a type whose numbers cannot be multiplied one by one.
fn multiply(bytes: &mut [u8], factors: &[(u32, f32)], (dtype, cols): (DType, usize)) -> Option<()> {
    if dtype.block_len() != 1 {
        return None;
    }
    let row_bytes = dtype.bytes_of(cols)?;
    let mut numbers = vec![0.0; cols];
    let mut rows = bytes.chunks_exact_mut(row_bytes);
    for &(n_rows, factor) in factors {
        for row in rows.by_ref().take(n_rows as usize) {
            quant::dequantise(dtype, row, &mut numbers).ok()?;
            numbers.iter_mut().for_each(|number| *number *= factor);
            quant::quantise(dtype, &numbers, row).ok()?;
        }
    }
    Some(())
}

/// Every row that counts, of as many bytes.
fn every(bytes: &[u8], weight: &NamedMatrix, row_bytes: usize) -> Vec<u8> {
    let [first, step] = [weight.first, weight.step].map(|n| n as usize);
    let rows = (0..weight.rows as usize).map(|row| first + row * step);
    rows.flat_map(|row| &bytes[row * row_bytes..][..row_bytes])
        .copied()
        .collect()
}

/// Pieces of some rows of `len` bytes, one behind the other.
fn pieces(bytes: &[u8], pieces: &[[u32; 2]], len: usize) -> Vec<u8> {
    let piece = |&[first, rows]: &[u32; 2]| &bytes[first as usize * len..][..rows as usize * len];
    pieces.iter().flat_map(piece).copied().collect()
}

/// Rows of each matrix of a stack, (stack, tensor columns, columns), of a tensor (stack, columns, tensor columns) of numbers of so
/// many bytes.
fn transposed(bytes: &[u8], weight: &NamedMatrix, len: usize) -> Vec<u8> {
    let [rows, width] = weight.tensor_shape().map(|n| n as usize);
    let cols = weight.cols as usize;
    let mut found = Vec::with_capacity(bytes.len() / weight.step as usize);
    for first_row in (0..rows).step_by(cols) {
        for column in (weight.first as usize..width).step_by(weight.step as usize) {
            for row in first_row..first_row + cols {
                let at = (row * width + column) * len;
                found.extend_from_slice(&bytes[at..at + len]);
            }
        }
    }
    found
}

/// The transposes of pieces of a tensor, one behind the other. Numbers keep their type; blocks of them are decoded.
fn transposed_pieces(
    view: &WeightView,
    bytes: &[u8],
    weight: &NamedMatrix,
    (path, device): (&Path, &mut dyn Device),
) -> Result<Matrix, EngineError> {
    if view.dtype.block_len() != 1 {
        let [rows, cols] = weight.tensor_shape().map(|n| n as usize);
        let mut values = vec![0.0; rows * cols];
        let fail = |error: QuantError| EngineError::Weight {
            path: path.to_path_buf(),
            name: view.tensor.to_string(),
            why: error.to_string(),
        };
        quant::dequantise(view.dtype, bytes, &mut values).map_err(fail)?;
        let bytes = bytemuck::cast_slice(&values);
        return transposed_numbers((bytes, VECTOR), weight, device);
    }
    transposed_numbers((bytes, view.dtype), weight, device)
}

fn transposed_numbers(
    (bytes, dtype): (&[u8], DType),
    weight: &NamedMatrix,
    device: &mut dyn Device,
) -> Result<Matrix, EngineError> {
    let (width, len) = (weight.tensor_shape()[1] as usize, dtype.block_bytes());
    let mut found = Vec::with_capacity(bytes.len());
    for &[first, rows] in &weight.pieces {
        for column in 0..width {
            for row in first as usize..(first + rows) as usize {
                found.extend_from_slice(&bytes[(row * width + column) * len..][..len]);
            }
        }
    }
    Ok(Matrix {
        place: copy(&found, &weight.name, device)?,
        dtype,
        rows: weight.rows,
        cols: weight.cols,
        storage: Storage::Rows,
    })
}

/// A vector that is multiplied by another one, or that has some of the numbers of a tensor.
pub(super) fn vector(
    store: &WeightStore,
    weight: &NamedVector,
    path: &Path,
    device: &mut dyn Device,
) -> Result<Slice, EngineError> {
    let read = |name: &str| -> Result<Vec<f32>, EngineError> {
        let values = read_vector(&view(store, name), path)?;
        let [first, step] = weight.every.map(|n| n as usize);
        let len = weight.rows as usize * weight.cols as usize;
        let own = values.into_iter().skip(first).step_by(step).take(len);
        Ok(own.map(|value| weight.change.of(value)).collect())
    };
    let mut values = read(&weight.name)?;
    if let Some(times) = &weight.times {
        let factors = read(times)?;
        values.iter_mut().zip(factors).for_each(|(x, y)| *x *= y);
    }
    copy(bytemuck::cast_slice(&values), &weight.name, device)
}

fn refused(view: &WeightView, path: &Path) -> EngineError {
    EngineError::Weight {
        path: path.to_path_buf(),
        name: view.tensor.to_string(),
        why: format!("its rows cannot be taken apart in the type {}", view.dtype),
    }
}

fn cannot_multiply(view: &WeightView, path: &Path) -> EngineError {
    EngineError::Weight {
        path: path.to_path_buf(),
        name: view.tensor.to_string(),
        why: format!(
            "the model multiplies it by a factor, which is not possible in the type {}; use a GGUF file, which has the product",
            view.dtype
        ),
    }
}
