//! A quantised weight matrix as panels.

use std::ops::Range;
use std::sync::Arc;

use akunu_program::Storage;

use super::format::{CELL, Quant, ROWS};
use super::pack::{Source, pack};
use crate::memory::Pages;

/// What is known of a matrix before it has memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedShape {
    /// How a panel is laid out.
    pub quant: Quant,
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Cells of a panel.
    pub cells: usize,
    panel_bytes: usize,
}

impl PackedShape {
    /// The panels of `source`; `None` when its rows are not whole blocks.
    pub fn of(source: &Source) -> Option<PackedShape> {
        let weight = source.weight;
        let quant = source.quant;
        let whole = weight.dtype.block_len().max(CELL);
        let groups = match weight.storage {
            Storage::Rows => true,
            Storage::Mlx(mlx) => (mlx.group_size as usize).is_multiple_of(CELL),
        };
        let rows_are_whole = weight.stride.is_multiple_of(weight.dtype.block_len());
        let empty = weight.rows == 0 || weight.cols == 0;
        if !weight.cols.is_multiple_of(whole) || !rows_are_whole || empty || !groups {
            return None;
        }
        let cells = weight.cols / CELL;
        Some(PackedShape {
            quant,
            rows: weight.rows,
            cols: weight.cols,
            cells,
            panel_bytes: quant.panel_bytes(cells),
        })
    }

    /// Bytes of so many panels.
    pub fn bytes_of(&self, n_panels: usize) -> usize {
        n_panels * self.panel_bytes
    }

    /// How many panels there are.
    pub fn count(&self) -> usize {
        self.rows.div_ceil(ROWS)
    }

    /// Bytes of all panels.
    pub fn bytes(&self) -> usize {
        self.count() * self.panel_bytes
    }
}

/// Panels of a weight matrix, one after the other, in pages that it may share with other matrices.
pub struct PackedMatrix {
    /// Its shape.
    pub shape: PackedShape,
    pages: Arc<Pages>,
    first: usize,
    /// Panels before the first that is there.
    skipped: usize,
}

impl PackedMatrix {
    /// A matrix whose panels begin at byte `first` of `pages`.
    pub fn new(shape: PackedShape, pages: Arc<Pages>, first: usize) -> PackedMatrix {
        PackedMatrix {
            shape,
            pages,
            first,
            skipped: 0,
        }
    }

    /// Panels `range` of a matrix, laid out in pages that nobody else has; `None` where they do not fit.
    pub fn some(
        (source, shape): (&Source, PackedShape),
        range: Range<usize>,
        pages: &mut Arc<Pages>,
    ) -> Option<PackedMatrix> {
        let bytes = range.len() * shape.panel_bytes;
        let own = Arc::get_mut(pages)?.bytes_mut().get_mut(..bytes)?;
        own.fill(0);
        let panels = own.chunks_exact_mut(shape.panel_bytes);
        for (at, panel) in range.clone().zip(panels) {
            pack(source, at, panel);
        }
        Some(PackedMatrix {
            shape,
            pages: Arc::clone(pages),
            first: 0,
            skipped: range.start,
        })
    }

    /// Panel `at`.
    pub fn panel(&self, at: usize) -> &[u8] {
        let bytes = self.shape.panel_bytes;
        &self.pages.bytes()[self.first + (at - self.skipped) * bytes..][..bytes]
    }

    /// Lays panels `range` out, which must be zeros.
    ///
    /// # Safety
    /// `own`: nobody else reads or writes these panels meanwhile.
    pub unsafe fn fill(&self, source: &Source, range: Range<usize>) {
        let bytes = self.shape.panel_bytes;
        for at in range {
            // SAFETY: passes on `own`.
            let out = unsafe {
                self.pages
                    .part(self.first + (at - self.skipped) * bytes, bytes)
            };
            pack(source, at, out);
        }
    }
}
