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
