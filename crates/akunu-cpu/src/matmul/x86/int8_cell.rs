//! Cells of weights and of vectors as bytes.

use super::int16_cell::{BlockScales, WeightScales};
use crate::panels::format::{CELL, ROWS};

/// Fours of columns of a cell.
pub const FOURS: usize = CELL / 4;

/// A widened cell.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Int8Cell {
    /// Of each four columns, the bytes of sixteen rows.
    pub numbers: [[u32; ROWS]; FOURS],
    /// What the sums of both halves of the columns are multiplied with, for each row, as both words of a lane.
    pub of_halves: [[u32; ROWS]; 2],
    /// Their scales.
    pub scales: WeightScales,
}

/// A cell of a block of `M` vectors.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Int8Block<const M: usize> {
    /// Of each four columns, the bytes of all vectors.
    pub fours: [[i32; M]; FOURS],
    /// Of both halves of the columns, the sums of those that are first or second of their four, and of those that are third or
    /// fourth, as the words of a lane.
    pub sums: [[i32; M]; 2],
    /// Their scales.
    pub scales: BlockScales<M>,
}
