//! Sizes that the whole runtime agrees on, and the memory that keys and values take.
//!
//! A layer keeps its keys and values in pages. A sequence needs pages for its whole context, or in a layer with a window for
//! what a piece of its prompt can see and write at once:
//!
//! ```text
//! slots = context                                   without a window
//!         min(context, window + chunk + slack)      with one
//! pages = slots / PAGE, rounded up, and one more
//! bytes = Σ over layers  pages * 2 * bytes of a page of keys
//! ```

use akunu_arch::{Attention, Model};
use akunu_types::KvFormat;

/// Slots of a page, as a power of two.
pub(crate) const PAGE_SHIFT: u32 = 6;
/// Slots of a page.
pub(crate) const PAGE: usize = 1 << PAGE_SHIFT;
/// Tokens that a sequence may choose in one submission.
pub(crate) const MAX_CHAIN: u32 = 64;
/// Positions behind a window that are kept, so that a chain can be rolled back.
pub(super) const WINDOW_SLACK: usize = 2 * MAX_CHAIN as usize;

/// States of a sequence: one of its prompt, one that it can come back to, one that grows, and one that is written next.
const STATES_OF_SEQUENCE: u64 = 4;

/// Pages for one sequence of `context` tokens that is read in pieces of `chunk`, in a layer with this window.
pub(super) fn sequence_pages(window: Option<u32>, context: usize, chunk: usize) -> u32 {
    let slots = window.map_or(context, |window| {
        (window as usize + chunk + WINDOW_SLACK + PAGE).min(context)
    });
    // One more for a page that is copied before it is written, because another sequence has it too.
    slots.div_ceil(PAGE) as u32 + 1
}

/// Bytes of the keys, or of the values, of one layer in as many pages.
pub(super) fn cache_bytes(attention: &Attention, format: KvFormat, n_pages: u32) -> usize {
    attention.slot_bytes(format) * PAGE * n_pages as usize
}

/// Bytes of all keys and values of one sequence of `context` tokens that is read in pieces of `chunk`.
pub(crate) fn sequence_bytes(config: &Model, format: KvFormat, context: u32, chunk: u32) -> u64 {
    let layers = config.cached_attention().map(|attention| {
        let pages = sequence_pages(attention.window, context as usize, chunk as usize);
        2 * cache_bytes(attention, format, pages) as u64
    });
    layers.sum::<u64>() + STATES_OF_SEQUENCE * config.state_bytes()
}
