//! How many vectors share a reading of the weights.

use crate::panels::format::ROWS;

/// Most vectors that share a reading of the weights.
pub const BATCH: usize = 4;

/// Up to this many vectors, a product computes each exactly as it would compute it alone.
pub const FEW: usize = 2 * BATCH;

/// The products of sixteen rows with each of up to [`BATCH`] vectors.
pub type Dots = [[f32; ROWS]; BATCH];
