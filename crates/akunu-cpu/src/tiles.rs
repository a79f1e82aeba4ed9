//! Tiles of bf16 numbers and the instructions that multiply them (AMX).

mod instructions;
mod split;

pub(crate) use instructions::{TILE, Tiles};
pub(crate) use split::{Split, masks, split};

/// Columns of a tile: pairs of bf16 numbers, one pair for each of 16 lanes.
pub(crate) const COLUMNS: usize = 32;
