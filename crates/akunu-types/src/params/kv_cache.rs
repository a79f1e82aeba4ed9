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
    /// Drops the oldest positions: `[shift, shift + new_len)` moves to `[0, new_len)`.
    pub struct KVCacheShiftParams = "KVCacheShiftParams", size = 32 {
        /// Number of key and value heads.
        0 => n_kv_heads: u32,
        /// Elements of a head.
        4 => head_dim: u32,
        /// Positions that the cache holds for each head.
        8 => max_seq_len: u32,
        /// Number of positions to drop.
        12 => shift: u32,
        /// Positions that remain.
        16 => new_len: u32,
        /// Base of the RoPE frequencies: k is stored rotated, so that what moves by `shift` positions
        /// is turned back by as many. Padding in the reference.
        20 => theta: f32,
        /// Linear scaling of positions, `1 / factor`; 1 for none. Padding in the reference.
        24 => freq_scale: f32,
        /// Unused, zero.
        28 => _pad0: u32,
    }
}
