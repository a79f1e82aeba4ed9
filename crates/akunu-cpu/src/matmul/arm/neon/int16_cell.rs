//! Cells of weights and of vectors as products with many vectors read them.

use crate::panels::format::ROWS;

/// Words of a cell of one vector: 32 numbers of 16 bits.
pub const WORDS: usize = 16;
/// Words of one digit of a cell.
pub const DIGIT: usize = WORDS / 2;
/// Bytes of a cell of x for each vector.
pub const CELL_BYTES: usize = size_of::<Int16Block<1>>();

/// A widened cell, with its numbers in the order of a way to multiply.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Int16Cell<N> {
    /// The numbers of all rows.
    pub numbers: N,
    /// The scale of each row in both halves of the columns.
    pub scales: [[f32; ROWS]; 2],
    /// The minimum of each row in both halves of the columns.
    pub mins: [[f32; ROWS]; 2],
}

/// A cell of a block of `M` vectors.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Int16Block<const M: usize> {
    /// The numbers, in the order of a way to multiply: each word of all vectors. They may be read four words at a time, beyond
    /// the last of them.
    pub words: [[u32; M]; WORDS],
    /// `128 Σ v`: what is missing where 128 was subtracted from the weights.
    pub starts: [i32; M],
    /// The scale of each vector.
    pub scales: [f32; M],
    /// What the minimum of the cell is multiplied with.
    pub weights_of_min: [f32; M],
    /// What the minima of both halves of the columns are multiplied with.
    pub weights_of_half_mins: [[f32; M]; 2],
}
