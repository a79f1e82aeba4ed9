//! Bytes together with their place in a mapped file.

use std::ops::Range;

/// A run of bytes of one of a model's files.
///
/// A device that can bind mapped memory uses `part` and `range()` with the whole file; everything
/// else reads `bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span<'a> {
    /// Which file, counted as in [`crate::WeightStore::parts`].
    pub part: usize,
    /// Where it starts in that file.
    pub offset: usize,
    /// The bytes.
    pub bytes: &'a [u8],
}

impl Span<'_> {
    /// Where the bytes lie in their file.
    pub fn range(&self) -> Range<usize> {
        self.offset..self.offset + self.bytes.len()
    }
}
