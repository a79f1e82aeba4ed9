//! A block of keys or of values as it is stored, what becomes of its scores, and the sizes that its products have.

use akunu_types::kv_format::Q8_BLOCK;

use crate::kernel::attention::blocks::BLOCK;

/// Elements that share a scale.
pub(super) const SHARED: usize = Q8_BLOCK as usize;
/// Bytes that are multiplied at once in each lane.
pub(super) const QUAD: usize = 4;
/// Keys of a vector.
pub(super) const LANES: usize = 16;
/// Vectors of the keys of a block.
pub(super) const GROUPS: usize = BLOCK / LANES;

/// The keys of a block, or the values, as (n, head_dim) bytes.
pub(super) struct Rows<'a> {
    /// How many, at least one. There is memory for [`BLOCK`].
    pub n: usize,
    pub bytes: &'a [u8],
    /// (n, scales of a head) halves.
    pub scales: &'a [u8],
}

/// What becomes of the scores of a block.
pub(super) struct Weights<'a> {
    /// (group, [`BLOCK`]), at most 1; 0 behind the last key.
    pub weights: &'a [f32],
    /// By what the sums of each head so far shrink.
    pub factors: &'a [f32],
}
