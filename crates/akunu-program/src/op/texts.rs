//! Attention and means over whole texts.

use crate::attention::{DistanceBias, Heads, RowKeys};
use crate::buffer::Slice;
use crate::position;

/// Turns every head of x to its row's position, in place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rope {
    /// (rows, n_heads, head_dim).
    pub x: Slice,
    /// Heads of a row.
    pub n_heads: u32,
    /// Elements of a head.
    pub head_dim: u32,
    /// Rotary positions.
    pub rope: position::Rope,
}

/// Turns every head of x by angles of its row, in place: `a, b = a * cosine - b * sine, a * sine + b * cosine`, where a and b are
/// elements d and d + head_dim / 2 of a head. Patches of an image turn by their line and their column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TurnHeads {
    /// (rows, n_heads, head_dim).
    pub x: Slice,
    /// Heads of a row.
    pub n_heads: u32,
    /// Elements of a head.
    pub head_dim: u32,
    /// The cosines of a row's pairs, then their sines, (rows, 2, head_dim / 2).
    pub turns: Slice,
}

/// Attention of each row over rows of two matrices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttendRows {
    /// Queries, (rows, n_heads, head_dim).
    pub q: Slice,
    /// Keys, as [`RowKeys`] says.
    pub k: Slice,
    /// Values, likewise.
    pub v: Slice,
    /// (rows, n_heads, head_dim).
    pub to: Slice,
    /// The heads.
    pub heads: Heads,
    /// Which keys a row sees.
    pub keys: RowKeys,
    /// Factor of the scores.
    pub scale: f32,
    /// What is added to the scaled scores; not for keys across.
    pub bias: Option<DistanceBias>,
}

/// `to[i] = mean of the rows of the text that row outputs[i] is of`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// (rows, dim).
    pub from: Slice,
    /// (outputs, dim).
    pub to: Slice,
    /// Elements of a row.
    pub dim: u32,
}
