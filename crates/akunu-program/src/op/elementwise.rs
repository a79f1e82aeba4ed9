//! What changes each number by itself.

use crate::activation::{ActivationFunction, GateFunction};
use crate::buffer::Slice;
use crate::step::Rows;

/// `to = activation(gate) * up`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gate {
    /// The activation function.
    pub activation: GateFunction,
    /// (rows, width). Nothing else reads it.
    pub gate: Slice,
    /// (rows, width). Nothing else reads it.
    pub up: Slice,
    /// (rows, width). Only products read it.
    pub to: Slice,
    /// Elements of a row.
    pub width: u32,
}

/// `x = function(x)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Activate {
    /// The function.
    pub function: ActivationFunction,
    /// Which rows.
    pub rows: Rows,
    /// (rows, width).
    pub x: Slice,
    /// Elements of a row.
    pub width: u32,
}

/// `to = x`, as halves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Halves {
    /// Which rows.
    pub rows: Rows,
    /// (rows, width).
    pub x: Slice,
    /// (rows, width), of f16.
    pub to: Slice,
    /// Elements of a row.
    pub width: u32,
}

/// Pieces of each row of `x` become pieces of the same row of `to`; what lies between those stays as it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CopyPieces {
    /// The first piece of the first row.
    pub x: Slice,
    /// Elements from one row of `x` to the next, and from one piece to the next. With 0 for the latter, all pieces are the same.
    pub x_strides: [u32; 2],
    /// Where the first piece of the first row goes.
    pub to: Slice,
    /// Elements from one row of `to` to the next, and from one piece to the next.
    pub to_strides: [u32; 2],
    /// Pieces of a row.
    pub pieces: u32,
    /// Elements of a piece.
    pub width: u32,
}
