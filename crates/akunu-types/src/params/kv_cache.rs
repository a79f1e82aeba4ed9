//! Parameters of the KV cache. A cache is head-major: (n_kv_heads, max_seq_len, head_dim).

use crate::layout::shared_struct;

shared_struct! {
    /// Writes `seq_len` new rows of k or v at `pos`.
    pub struct KVCacheWriteParams = "KVCacheWriteParams", size = 32 {
        /// Number of key and value heads.
        0 => n_kv_heads: u32,
        /// Elements of a head.
        4 => head_dim: u32,
        /// Positions that the cache holds for each head.
        8 => max_seq_len: u32,
        /// Position of the first row; position p is written to slot `p % max_seq_len`. Patched per token.
        12 => pos: u32,
        /// Elements between rows of the source; 0 means `n_kv_heads * head_dim`.
        16 => src_stride: u32,
        /// Number of rows to write.
        20 => seq_len: u32,
        /// Unused, zero.
        24 => _pad0: u32,
        /// Unused, zero.
        28 => _pad1: u32,
    }
}

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
