//! Tiles of bf16 numbers and the instructions that multiply them (AMX).

mod instructions;
mod split;
mod transpose;

pub(crate) use instructions::{TILE, Tiles};
pub(crate) use split::{Split, masks, split};
pub(crate) use transpose::transpose;

/// Columns of a tile: pairs of bf16 numbers, one pair for each of 16 lanes.
pub(crate) const COLUMNS: usize = 32;
