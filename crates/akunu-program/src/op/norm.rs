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

/// `to = weight * x / rms(x)` for each head of each row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeadNorm {
    /// (rows, n_heads, head_dim).
    pub x: Slice,
    /// (head_dim).
    pub weight: Slice,
    /// (rows, n_heads, head_dim).
    pub to: Slice,
    /// Heads of a row.
    pub n_heads: u32,
    /// Elements of a head.
    pub head_dim: u32,
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
