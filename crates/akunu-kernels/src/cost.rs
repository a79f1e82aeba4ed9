//! What a launch costs: the bytes that it moves and the operations that it computes.
//!
//! The model counts what must come from memory. Each binding is read and written once, as far as the
//! row requires it; a row says where that is not so: weights that are read again for further rows of
//! the input, keys that no query sees, cache slots and table rows that are left alone. What threads
//! read again while it is in a cache (the input of a product, the keys that query heads share) counts
//! once. So `bytes_read + bytes_written` over the memory's speed is a floor for the time of a step.
//!
//! Operations are those of products and attention, two for a multiplication with its addition; all
//! other kernels wait for memory and count none.

mod planned;
mod work;

pub use self::work::{Cost, Traffic, Work, multiply_adds};
