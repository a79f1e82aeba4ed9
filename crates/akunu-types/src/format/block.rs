//! A block of quantised weights as files have it.

use super::cell::{CELL, Cell, CellFormat};
use crate::layout::SharedStruct;

/// Values in a plain block.
pub const QK: usize = CELL;
/// Values in a super-block of the K family.
pub const QK_K: usize = 256;

/// A quantised block as files have it.
pub trait Block: SharedStruct {
    /// The name in lower case, as it stands in kernel names.
    const NAME: &'static str;
    /// GGUF's id.
    const ID: u32;
    /// GGUF's `general.file_type` for a file of such blocks; `None` where only mixtures of formats have one.
    const FILE_TYPE: Option<u32>;
    /// Cells of a block.
    const CELLS: usize;
    /// What its cells have in common.
    const FORMAT: CellFormat;
    /// Values of a block.
    const LEN: usize = Self::CELLS * CELL;

    /// Cell `at` of the block.
    fn cell(&self, at: usize) -> Cell;
}
