//! Tiles of bf16 numbers and the instructions that multiply them (AMX).

mod split;
mod tiles;

pub(crate) use split::{Split, masks, split};
pub(crate) use tiles::{TILE, Tiles};

/// Columns of a tile: pairs of bf16 numbers, one pair for each of 16 lanes.
pub(crate) const COLUMNS: usize = 32;
