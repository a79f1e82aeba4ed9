//! The tensor list: what each tensor is and where its bytes are.

use super::cursor::Cursor;
use super::error::{Problem, TensorFault};
use super::metadata::read_name;
use crate::dims::Dims;
use akunu_types::DType;
use std::ops::Range;

/// GGUF tensors have at most this many dimensions.
const MAX_GGUF_DIMS: u32 = 4;

/// An entry takes at least this many bytes: name length, one character, number of dimensions, one
/// dimension, type, offset.
pub(crate) const MIN_ENTRY_BYTES: usize = 8 + 1 + 4 + 8 + 4 + 8;

/// One tensor of a GGUF file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Name, as in the file.
    pub name: String,
    /// Dimensions in ggml's order: the length of a row first.
    pub dims: Dims,
    /// Type of the elements.
    pub dtype: DType,
    /// Which file of a split model holds it, from 0.
    pub part: usize,
    /// Where it lies in that file, in bytes.
    pub range: Range<usize>,
}

/// A tensor and its bytes, borrowed from the mapped file.
#[derive(Clone, Copy, Debug)]
pub struct TensorView<'a> {
    /// What it is and where it lies.
    pub info: &'a TensorInfo,
    /// Its elements.
    pub bytes: &'a [u8],
}

/// The data section of one file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataSection {
    /// Where it starts in the file.
    pub(crate) start: usize,
    /// Its length in bytes.
    pub(crate) len: usize,
    /// What tensor offsets are a multiple of.
    pub(crate) alignment: usize,
}

/// An entry of the tensor list before the data section is known.
#[derive(Debug)]
pub(crate) struct RawTensor {
    name: String,
    dims: Dims,
    dtype: DType,
    offset: u64,
}

impl RawTensor {
    /// Reads entry `index` and checks what can be checked without its neighbours.
    pub(crate) fn read(cursor: &mut Cursor<'_>, index: usize) -> Result<RawTensor, Problem> {
        let fail = |name: Option<&str>, fault| Problem::Tensor {
            index,
            name: name.map(str::to_string),
            fault,
        };
        let name = read_name(cursor).map_err(|fault| fail(None, fault.into()))?;
        RawTensor::read_after_name(cursor, name).map_err(|fault| fail(Some(name), fault))
    }

    fn read_after_name(cursor: &mut Cursor<'_>, name: &str) -> Result<RawTensor, TensorFault> {
        let n_dims = cursor.u32()?;
        check_dim_count(n_dims)?;
        let mut sizes = [0; MAX_GGUF_DIMS as usize];
        for size in &mut sizes[..n_dims as usize] {
            *size = cursor.u64()?;
        }
        let sizes = &sizes[..n_dims as usize];
        let id = cursor.u32()?;
        Ok(RawTensor {
            name: name.to_string(),
            dims: checked_dims(sizes)?,
            dtype: DType::from_gguf_id(id).ok_or(TensorFault::UnknownType { id })?,
            offset: cursor.u64()?,
        })
    }

    /// Where it ends in the data section, if that can be counted.
    pub(crate) fn end(&self) -> Option<usize> {
        let size = tensor_bytes(&self.dims, self.dtype).ok()?;
        usize::try_from(self.offset).ok()?.checked_add(size)
    }

    /// Places the tensor in its file: aligned, inside the data section, after its predecessor.
    pub(crate) fn place(
        self,
        index: usize,
        data: DataSection,
        previous_end: usize,
    ) -> Result<TensorInfo, Problem> {
        match self.range_in(data, previous_end) {
            Ok(range) => Ok(TensorInfo {
                name: self.name,
                dims: self.dims,
                dtype: self.dtype,
                part: 0,
                range: data.start + range.start..data.start + range.end,
            }),
            Err(fault) => Err(Problem::Tensor {
                index,
                name: Some(self.name),
                fault,
            }),
        }
    }

    fn range_in(
        &self,
        data: DataSection,
        previous_end: usize,
    ) -> Result<Range<usize>, TensorFault> {
        let size = tensor_bytes(&self.dims, self.dtype)?;
        let (offset, alignment) = (self.offset, data.alignment);
        if !offset.is_multiple_of(alignment as u64) {
            return Err(TensorFault::Misaligned { offset, alignment });
        }
        let beyond = TensorFault::BeyondFile {
            offset,
            size,
            available: data.len,
        };
        let start = usize::try_from(offset).ok();
        let end = start.and_then(|start| start.checked_add(size));
        let (Some(start), Some(end)) = (start, end) else {
            return Err(beyond);
        };
        if end > data.len {
            return Err(beyond);
        }
        if start < previous_end {
            return Err(TensorFault::Order {
                offset,
                previous_end,
            });
        }
        Ok(start..end)
    }
}

fn check_dim_count(n_dims: u32) -> Result<(), TensorFault> {
    match n_dims {
        1..=MAX_GGUF_DIMS => Ok(()),
        _ => Err(TensorFault::DimCount { n_dims }),
    }
}

/// As many dimensions as GGUF allows, none of them zero, with a product that can be counted.
pub(crate) fn checked_dims(sizes: &[u64]) -> Result<Dims, TensorFault> {
    check_dim_count(u32::try_from(sizes.len()).unwrap_or(u32::MAX))?;
    let dims = || sizes.to_vec();
    if sizes.contains(&0) {
        return Err(TensorFault::ZeroDim { dims: dims() });
    }
    Dims::new(sizes).ok_or_else(|| TensorFault::TooLarge { dims: dims() })
}

/// Bytes of a tensor whose rows are whole blocks.
pub(crate) fn tensor_bytes(dims: &Dims, dtype: DType) -> Result<usize, TensorFault> {
    let (row, block) = (dims.cols(), dtype.block_len());
    if !row.is_multiple_of(block) {
        return Err(TensorFault::PartialBlock { row, block, dtype });
    }
    dtype.bytes_of(dims.n_elements()).ok_or_else(|| {
        let dims = dims.as_slice().iter().map(|&n| n as u64).collect();
        TensorFault::TooLarge { dims }
    })
}
