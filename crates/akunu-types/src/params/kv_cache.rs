//! Parameters of what is done to keys and values that are kept.

use crate::layout::shared_struct;

shared_struct! {
    /// Drops slots of a sequence: those from `keep + shift` on move down to `keep`.
    pub struct KVShiftParams = "KVShiftParams", size = 48 {
        /// The sequence.
        0 => sequence: u32,
        /// Number of key and value heads.
        4 => n_kv_heads: u32,
        /// Elements of a head.
        8 => head_dim: u32,
        /// Slots at the beginning that stay where they are.
        12 => keep: u32,
        /// Number of slots to drop.
        16 => shift: u32,
        /// Slots that move down.
        20 => new_len: u32,
        /// A page holds `1 << page_shift` slots, at least 32.
        24 => page_shift: u32,
        /// Pages of a sequence in the page table.
        28 => table_stride: u32,
        /// Pages of the pool.
        32 => n_pages: u32,
        /// Sequences of the page table.
        36 => n_sequences: u32,
        /// Base of the RoPE frequencies: k is stored turned, so that what moves by `shift` slots is turned back by as many.
        40 => theta: f32,
        /// Linear scaling of positions, `1 / factor`; 1 for none.
        44 => freq_scale: f32,
    }
}
