//! MLX weights: three tensors of a file, bound where they lie.
//!
//! The packed values, the scales and the biases of a matrix lie anywhere in their file and at any byte, because MLX writes
//! tensors in no order and without padding. A matrix is one binding of the mapped file, from the first of its tensors to
//! the end of the last; where they lie in it is a part of the kernels' params:
//!
//! ```text
//! file   ..|  scales  |..........|  packed values  |....|  biases  |...
//!          ^ place     <- others ->                                ^ end
//! ```
//!
//! What lies between belongs to other weights and is not read. A few matrices are copied: those whose tensors are in two
//! files, or too far apart for a buffer of the device, and the one at the end of a file that does not end with a whole word.

use akunu_gguf::{MlxTensor, Span, WeightStore};
use akunu_program::{Buffer, Device, Matrix, MlxLayout, ScaleType, Slice, Storage};

use super::copy::{BINDING_ALIGNMENT, copy};
use crate::error::EngineError;

/// Kernels read whole words.
const WORD: usize = 4;

/// A matrix that is bound where it lies.
pub(super) struct InPlace {
    /// The file.
    pub(super) part: usize,
    /// Bytes of the binding.
    pub(super) bytes: usize,
    /// Where it begins in the file.
    start: usize,
    layout: MlxLayout,
}

impl InPlace {
    /// The place of a matrix; `None` where it must be copied.
    pub(super) fn of(mlx: &MlxTensor, store: &WeightStore, device: &dyn Device) -> Option<InPlace> {
        let spans = spans(mlx);
        let part = mlx.packed.part;
        // Two matrices never begin in the same 16 bytes: a device may tell them apart by their places.
        let long_enough = |span: &Span| span.part == part && span.bytes.len() >= BINDING_ALIGNMENT;
        if !spans.iter().all(long_enough) {
            return None;
        }
        let first = spans.iter().map(|span| span.offset).min()?;
        let end = spans.iter().map(|span| span.range().end).max()?;
        let start = first / BINDING_ALIGNMENT * BINDING_ALIGNMENT;
        let file = store.parts().get(part)?.len();
        let bytes = (end - start).next_multiple_of(WORD);
        if start + bytes > file || bytes > device.longest_binding(file) {
            return None;
        }
        let [packed, scales, biases] = spans.map(|span| u32::try_from(span.offset - start));
        let layout = grouped(mlx)?.at([packed.ok()?, scales.ok()?, biases.ok()?]);
        Some(InPlace {
            part,
            bytes,
            start,
            layout,
        })
    }

    /// Where its binding begins, in the buffers of the files.
    pub(super) fn bound(&self, parts: &[Buffer]) -> (Slice, Storage) {
        let place = Slice {
            buffer: parts[self.part],
            offset: self.start,
        };
        (place, Storage::Mlx(self.layout))
    }
}

/// A copy of a matrix: packed values, scales and biases, one after the other.
pub(super) fn copied(
    mlx: &MlxTensor,
    label: &str,
    device: &mut dyn Device,
) -> Result<(Slice, Storage), EngineError> {
    let mut bytes = spans(mlx).map(|span| span.bytes).concat();
    bytes.resize(bytes.len().next_multiple_of(WORD), 0);
    let place = copy(&bytes, label, device)?;
    let scales_at = mlx.packed.bytes.len();
    let biases_at = scales_at + mlx.scales.bytes.len();
    let layout = grouped(mlx).unwrap_or_default();
    let layout = layout.at([0, scales_at as u32, biases_at as u32]);
    Ok((place, Storage::Mlx(layout)))
}

/// `rows` rows of a matrix, from `first` on.
pub(super) fn some_rows(whole: Matrix, mlx: MlxLayout, first: u32, rows: u32) -> Matrix {
    let row_bytes = whole.dtype.bytes_of(whole.cols as usize).unwrap_or(0) as u32;
    let scale_bytes = whole.cols / mlx.group_size.max(1) * mlx.scale_type.bytes() as u32;
    let at = [
        mlx.packed_at + first * row_bytes,
        mlx.scales_at + first * scale_bytes,
        mlx.biases_at + first * scale_bytes,
    ];
    let least = at.into_iter().fold(u32::MAX, u32::min);
    let start = least / BINDING_ALIGNMENT as u32 * BINDING_ALIGNMENT as u32;
    Matrix {
        place: Slice {
            offset: whole.place.offset + start as usize,
            ..whole.place
        },
        rows,
        storage: Storage::Mlx(mlx.at(at.map(|at| at - start))),
        ..whole
    }
}

/// Packed values, scales, biases.
fn spans<'a>(mlx: &MlxTensor<'a>) -> [Span<'a>; 3] {
    [mlx.packed, mlx.scales, mlx.biases]
}

/// The group size and the type of the scales.
fn grouped(mlx: &MlxTensor) -> Option<MlxLayout> {
    let scale_type = ScaleType::of(mlx.scale_type)?;
    Some(MlxLayout::grouped(mlx.affine.group_size, scale_type.code()))
}
