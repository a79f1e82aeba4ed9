//! Parameters of rotary position embedding.
//!
//! The pair d of a head turns by `pos * freq_scale / divisor[d]`, where `divisor[d]` comes from the
//! frequency table or is `theta ^ (2d / head_dim)`.

use crate::layout::shared_struct;

shared_struct! {
    /// RoPE alone, in place over (seq_len, n_heads, head_dim).
    pub struct RoPEParams = "RoPEParams", size = 32 {
        /// Number of rows (tokens).
        0 => seq_len: u32,
        /// Elements of a head; half as many pairs are rotated.
        4 => head_dim: u32,
        /// Number of heads of a row.
        8 => n_heads: u32,
        /// Position of the first row. Patched per token.
        12 => pos_offset: u32,
        /// Base of the frequencies.
        16 => theta: f32,
        /// Elements between rows; 0 means `n_heads * head_dim`.
        20 => row_stride: u32,
        /// Linear scaling of positions, `1 / factor`; 1 for none. Padding in the reference.
        24 => freq_scale: f32,
        /// Unused, zero.
        28 => _pad0: u32,
    }
}

shared_struct! {
    /// RoPE of q and k of one token, fused with the write of k and v into the cache.
    ///
    /// The input is the contiguous output of the q, k and v projections. Also read by the kernel that
    /// normalises each head of q and k before it turns them.
    pub struct RoPEQKVWriteParams = "RoPEQKVWriteParams", size = 48 {
        /// Number of key and value heads.
        0 => n_kv_heads: u32,
        /// Elements of a head.
        4 => head_dim: u32,
        /// Positions that the cache holds for each head.
        8 => max_seq_len: u32,
        /// Position of the token; it is written to slot `pos % max_seq_len`. Patched per token.
        12 => pos: u32,
        /// Base of the frequencies.
        16 => theta: f32,
        /// Number of query heads.
        20 => n_heads: u32,
        /// Where k starts in the input, in elements.
        24 => k_elem_offset: u32,
        /// Where v starts in the input, in elements.
        28 => v_elem_offset: u32,
        /// Linear scaling of positions, `1 / factor`; 1 for none.
        32 => freq_scale: f32,
        /// Added to the mean square before the root, where heads are normalised. Padding in the
        /// reference.
        36 => eps: f32,
        /// Unused, zero.
        40 => _pad0: u32,
        /// Unused, zero.
        44 => _pad1: u32,
    }
}

shared_struct! {
    /// RoPE of q and k of many tokens, fused with the write of k and v into the cache.
    ///
    /// q is (seq_len, n_heads, head_dim), k and v are (seq_len, n_kv_heads, head_dim). Also read by
    /// the kernel that normalises each head of q and k before it turns them.
    pub struct RoPEBatchKVWriteParams = "RoPEBatchKVWriteParams", size = 48 {
        /// Number of rows (tokens).
        0 => seq_len: u32,
        /// Number of query heads.
        4 => n_heads: u32,
        /// Number of key and value heads.
        8 => n_kv_heads: u32,
        /// Elements of a head.
        12 => head_dim: u32,
        /// Positions that the cache holds for each head.
        16 => max_seq_len: u32,
        /// Position of the first row. Patched per token.
        20 => pos: u32,
        /// Base of the frequencies.
        24 => theta: f32,
        /// Linear scaling of positions, `1 / factor`; 1 for none.
        28 => freq_scale: f32,
        /// Added to the mean square before the root, where heads are normalised.
        32 => eps: f32,
        /// Elements between rows of q; 0 means `n_heads * head_dim`.
        36 => q_stride: u32,
        /// Elements between rows of k and of v; 0 means `n_kv_heads * head_dim`.
        40 => kv_stride: u32,
        /// Unused, zero.
        44 => _pad0: u32,
    }
}
