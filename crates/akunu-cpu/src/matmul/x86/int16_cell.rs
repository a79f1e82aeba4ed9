//! Cells of weights and of vectors as pairs of 16-bit words, and the scales of cells.

use crate::panels::format::{CELL, ROWS};

/// Pairs of columns of a cell.
pub const PAIRS: usize = CELL / 2;

/// The first column of a pair; the second is two columns further: the pairs of four columns are (0, 2) and (1, 3).
pub const fn first_of_pair(pair: usize) -> usize {
    4 * (pair / 2) + pair % 2
}

/// A widened cell.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Int16Cell {
    /// Of each pair of columns, both words of sixteen rows; the low word is that of the [first column](first_of_pair).
    pub words: [[u32; ROWS]; PAIRS],
    /// Their scales.
    pub scales: WeightScales,
}

/// The scales of a widened cell.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct WeightScales {
    /// The scale of each row.
    pub scale: [f32; ROWS],
    /// The minimum of each row in both halves of the columns.
    pub mins: [[f32; ROWS]; 2],
}

/// A cell of a block of `M` vectors.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Int16Block<const M: usize> {
    /// Of each pair of columns, the words of all vectors.
    pub pairs: [[i32; M]; PAIRS],
    /// Their scales.
    pub scales: BlockScales<M>,
}

/// The scales of a cell of a block of `M` vectors.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct BlockScales<const M: usize> {
    /// The scale of each vector.
    pub scale: [f32; M],
    /// What the minimum of the cell is multiplied with.
    pub weights_of_min: [f32; M],
    /// What the minima of both halves of the columns are multiplied with.
    pub weights_of_half_mins: [[f32; M]; 2],
}

/// Floats of a vector in [`BlockScales`].
pub const SCALES: usize = size_of::<BlockScales<1>>() / size_of::<f32>();

/// The scales of one vector, as [`BlockScales`] has them, of a scale and the sums of the numbers in both halves of a cell. Where
/// something is not finite the sums may have wrapped around.
#[inline(always)]
pub fn scales_of(scale: f32, sums: [i32; 2]) -> [f32; SCALES] {
    let [low, high] = sums.map(|sum| scale * sum as f32);
    let whole = scale * sums[0].wrapping_add(sums[1]) as f32;
    [scale, whole, low, high]
}

/// What a cell adds beside its scaled products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Minima {
    /// Nothing.
    None,
    /// A minimum.
    One,
    /// A minimum for each half of the columns.
    OfHalves,
}
