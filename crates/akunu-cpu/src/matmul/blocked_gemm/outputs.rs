//! How the parts share the outputs of a product with many vectors.

use std::ops::Range;

use super::{BlockedGemm, Blocks, MicroKernel, scratch_bytes};
use crate::matmul::shape::Shape;
use crate::part::Part;
use crate::pieces::Pieces;

/// The outputs of a product: groups of rows of the weight, of which the parts take some at once.
pub struct Outputs {
    groups: usize,
    at_once: usize,
    pieces: Pieces,
}

impl Outputs {
    /// As many at once as share a reading of x, `most`, if there are enough for all parts.
    pub fn divide(part: &mut Part, (groups, most): (usize, usize)) -> Outputs {
        let at_once = (groups / part.count).clamp(1, most);
        Outputs {
            groups,
            at_once,
            pieces: part.divide(groups.div_ceil(at_once)),
        }
    }

    /// The next groups for this part.
    pub fn take(&mut self, part: &Part) -> Option<Range<usize>> {
        let piece = part.take(&mut self.pieces)?;
        Some(piece.start * self.at_once..self.groups.min(piece.end * self.at_once))
    }
}

/// Multiplies this part's groups of rows.
///
/// # Safety
/// - `reach`: x is laid out for the micro-kernel; `y` is the whole output.
/// - `own`: nobody else touches the outputs of the groups that the part takes.
pub unsafe fn multiply_blocked<F: MicroKernel>(
    part: &mut Part,
    kernel: F,
    shape: &Shape,
    (packed, blocks): (*const u8, Blocks),
    (y, mut outputs): (*mut f32, Outputs),
) {
    let bytes = scratch_bytes::<F>(blocks);
    let gemm = BlockedGemm {
        kernel,
        shape,
        blocks,
        packed,
        scratch: part.scratch.take::<u8>(bytes).as_mut_ptr(),
        y,
    };
    while let Some(range) = outputs.take(part) {
        // SAFETY: passes on `reach` and `own`; each part has groups of its own.
        unsafe { gemm.run(range) };
    }
}
