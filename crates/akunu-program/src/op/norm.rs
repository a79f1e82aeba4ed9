//! Norms of rows.

use crate::buffer::Slice;
use crate::step::Rows;

/// `to = weight * x / rms(x)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Norm {
    /// Which rows.
    pub rows: Rows,
    /// (rows, dim).
    pub x: Slice,
    /// (dim).
    pub weight: Slice,
    /// (rows, dim).
    pub to: Slice,
    /// Elements of a row.
    pub dim: u32,
    /// Added under the root.
    pub eps: f32,
}

/// `to += weight * x / rms(x)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AddNorm {
    /// (rows, dim).
    pub x: Slice,
    /// (dim).
    pub weight: Slice,
    /// (rows, dim).
    pub to: Slice,
    /// Elements of a row.
    pub dim: u32,
    /// Added under the root.
    pub eps: f32,
}

/// `to = weight * (x - mean(x)) / deviation(x) + bias`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerNorm {
    /// Which rows.
    pub rows: Rows,
    /// (rows, dim).
    pub x: Slice,
    /// (dim).
    pub weight: Slice,
    /// (dim).
    pub bias: Slice,
    /// (rows, dim).
    pub to: Slice,
    /// Elements of a row.
    pub dim: u32,
    /// Added under the root.
    pub eps: f32,
}
