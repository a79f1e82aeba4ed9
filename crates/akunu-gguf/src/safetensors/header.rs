//! The header of one safetensors file, read and checked by the package `safetensors`.
//!
//! ```text
//! u64 length of the header
//! JSON { name: { dtype, shape, data_offsets: [begin, end] }, …, "__metadata__": {…} }
//! data: the tensors without gaps, offsets counted from its start
//! ```
//!
//! The package takes about 30 times the memory of the JSON that it parses, so our limits come first.

use super::error::{EntryFault, FolderError, FolderProblem, HeaderFault};
use super::fault::explain;
use crate::dims::{Dims, MAX_DIMS};
use crate::json_size::n_json_values;
use ::safetensors::{Dtype, SafeTensors};
use akunu_types::DType;
use std::ops::Range;
use std::path::Path;

/// The longest header that the format allows.
const MAX_HEADER_BYTES: u64 = 100_000_000;
/// The most tensors accepted in one file; the largest models have a few thousand.
const MAX_TENSORS: usize = 1 << 16;
/// The most values in a header: an entry has five, and one for each dimension.
const MAX_VALUES: usize = 16 * MAX_TENSORS;

/// One tensor of a safetensors file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SafetensorInfo {
    /// Name, as in the file.
    pub name: String,
    /// Dimensions in ggml's order, the reverse of the header's: the length of a row first. A scalar
    /// has one dimension of 1.
    pub dims: Dims,
    /// Type of the elements.
    pub element: Dtype,
    /// Which file of the folder holds it, from 0.
    pub part: usize,
    /// Where it lies in that file, in bytes.
    pub range: Range<usize>,
}

impl SafetensorInfo {
    /// The type of the elements, if weights may have it.
    pub fn dtype(&self) -> Option<DType> {
        match self.element {
            Dtype::I8 => Some(DType::I8),
            Dtype::I16 => Some(DType::I16),
            Dtype::I32 => Some(DType::I32),
            Dtype::I64 => Some(DType::I64),
            Dtype::F16 => Some(DType::F16),
            Dtype::BF16 => Some(DType::BF16),
            Dtype::F32 => Some(DType::F32),
            Dtype::F64 => Some(DType::F64),
            _ => None,
        }
    }
}

/// Reads and checks the header of a whole file, which errors call `path`; the tensors come in the order of their data.
pub fn read_safetensors_header(
    path: &Path,
    file: &[u8],
) -> Result<Vec<SafetensorInfo>, FolderError> {
    read_header(file).map_err(|problem| problem.in_file(path))
}

/// The same for a caller that adds the file's name to errors.
pub(crate) fn read_header(file: &[u8]) -> Result<Vec<SafetensorInfo>, FolderProblem> {
    let json = header_json(file)?;
    let data_start = size_of::<u64>() + json.len();
    let (_, header) = SafeTensors::read_metadata(file)
        .map_err(|error| explain(json, file.len() - data_start, &error))?;
    let names = header.offset_keys();
    if names.len() > MAX_TENSORS {
        return Err(HeaderFault::TooMany { limit: MAX_TENSORS }.into());
    }
    let mut tensors = Vec::with_capacity(names.len());
    for name in names {
        let Some(info) = header.info(&name) else {
            continue;
        };
        let Some(dims) = dims_of_shape(&info.shape) else {
            let shape = format!("{:?}", info.shape);
            return Err(FolderProblem::tensor(&name, EntryFault::Shape { shape }));
        };
        let (begin, end) = info.data_offsets;
        tensors.push(SafetensorInfo {
            name,
            dims,
            element: info.dtype,
            part: 0,
            range: data_start + begin..data_start + end,
        });
    }
    Ok(tensors)
}

/// The bytes of the JSON, if they are there and not too many.
fn header_json(file: &[u8]) -> Result<&[u8], HeaderFault> {
    let (length, rest) = file.split_first_chunk().ok_or(HeaderFault::Truncated)?;
    let length = u64::from_le_bytes(*length);
    let limit = MAX_HEADER_BYTES;
    if length > limit {
        return Err(HeaderFault::Length { length, limit });
    }
    let length = usize::try_from(length).map_err(|_| HeaderFault::Truncated)?;
    let json = rest.get(..length).ok_or(HeaderFault::Truncated)?;
    match n_json_values(json) > MAX_VALUES {
        true => Err(HeaderFault::TooMany { limit: MAX_TENSORS }),
        false => Ok(json),
    }
}

/// A header's shape names the outermost dimension first; a scalar has none.
pub(super) fn dims_of_shape(shape: &[usize]) -> Option<Dims> {
    match shape {
        [] => Dims::new(&[1]),
        _ if shape.len() > MAX_DIMS => None,
        _ => Dims::new(&shape.iter().rev().map(|n| *n as u64).collect::<Vec<_>>()),
    }
}
