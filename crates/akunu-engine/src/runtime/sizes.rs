//! Sizes that the whole runtime agrees on.

/// Slots of a page, as a power of two.
pub(crate) const PAGE_SHIFT: u32 = 6;
/// Slots of a page.
pub(crate) const PAGE: usize = 1 << PAGE_SHIFT;
/// Tokens that a sequence may choose in one submission.
pub(crate) const MAX_CHAIN: u32 = 64;
