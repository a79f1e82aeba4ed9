//! Products with weights, and what scales them.

use crate::buffer::Slice;
use crate::matrix::{Matrix, Windows};
use crate::step::Rows;

/// `to = x · weightᵀ + bias`, or `to += …`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Product {
    /// Which rows.
    pub rows: Rows,
    /// The weight, (outputs, inputs).
    pub weight: Matrix,
    /// (rows, inputs).
    pub x: Slice,
    /// (rows, outputs).
    pub to: Slice,
    /// Whether it is added to what is there.
    pub add: bool,
    /// (outputs).
    pub bias: Option<Slice>,
    /// What it is in the model.
    pub label: &'static str,
}

/// `x *= factors[sequence]` for each row; a factor of 0 gives zeros. What an adapter adds to a product is scaled so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScaleRows {
    /// Which rows.
    pub rows: Rows,
    /// (rows, width).
    pub x: Slice,
    /// Elements of a row.
    pub width: u32,
    /// The factor of each sequence, (n_sequences).
    pub factors: Slice,
}

/// `to[i] = weight · window i of x + bias`: see [`Windows`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Convolve {
    /// The weight, (outputs, numbers of a window).
    pub weight: Matrix,
    /// (outputs).
    pub bias: Slice,
    /// The signal.
    pub x: Slice,
    /// Its windows.
    pub windows: Windows,
    /// (windows, outputs).
    pub to: Slice,
}
