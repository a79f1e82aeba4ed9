//! Keys and values that stay: moved within the pages of a sequence, or written to a cache without pages.
//!
//! A cache without pages is (n_kv_heads, max_seq_len, head_dim) halves for k and as many for v, and the
//! slots of a head are a ring: position p lies in slot `p % max_seq_len`.

pub mod kv_cache_write;
pub mod kv_shift;

use half::f16;

/// A cache (n_kv_heads, n_slots, head_dim) whose slots are a ring.
#[derive(Debug)]
struct Ring<'a> {
    cache: &'a mut [f16],
    n_slots: usize,
    head_dim: usize,
}

impl Ring<'_> {
    /// Writes one row of a head to the slot of its position.
    fn write(&mut self, head: usize, position: usize, row: &[f32]) {
        let start = (head * self.n_slots + position % self.n_slots) * self.head_dim;
        for (slot, &value) in self.cache[start..].iter_mut().zip(row) {
            *slot = f16::from_f32(value);
        }
    }
}
