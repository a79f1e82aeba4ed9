//! Keys in blocks.

use std::ops::Range;

/// Keys of a block: their scores stay in the fastest cache.
pub(super) const BLOCK: usize = 64;

/// Where a largest score begins: below every real one, and still a number that can be subtracted.
pub(super) const LOWEST: f32 = -1e30;

/// Cuts keys into blocks. All but the first begin at a multiple of [`BLOCK`].
pub(super) fn blocks(keys: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let cuts = keys.start / BLOCK..keys.end.div_ceil(BLOCK);
    cuts.map(move |at| keys.start.max(at * BLOCK)..keys.end.min((at + 1) * BLOCK))
}
