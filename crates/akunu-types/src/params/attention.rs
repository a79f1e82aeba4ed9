//! Parameters of attention and softmax.

use crate::layout::shared_struct;

shared_struct! {
    /// Attention of `seq_len` queries over `kv_seq_len` cached keys and values.
    ///
    /// Causal with an offset: query i sees keys `0 ..= kv_seq_len - seq_len + i`. Query head h reads
    /// KV head `h / (n_heads / n_kv_heads)`. Key p lies in slot `p % n` of the `n = kv_stride /
    /// head_dim` slots of its head, so that of more than n keys only the last n are seen.
    pub struct AttentionParams = "AttentionParams", size = 32 {
        /// Number of queries: 1 for decode.
        0 => seq_len: u32,
        /// Number of keys and values to look at. Patched per token.
        4 => kv_seq_len: u32,
        /// Elements of a head.
        8 => head_dim: u32,
        /// Number of query heads, a multiple of `n_kv_heads`.
        12 => n_heads: u32,
        /// Number of key and value heads.
        16 => n_kv_heads: u32,
        /// Factor of the scores before the softmax, usually `1 / sqrt(head_dim)`.
        20 => scale: f32,
        /// Elements between KV heads, a multiple of `head_dim`: `max_seq_len * head_dim`; 0 means
        /// `kv_seq_len * head_dim`.
        24 => kv_stride: u32,
        /// Elements between rows of Q and of the output, which are then row-major
        /// (seq_len, n_heads, head_dim); 0 means head-major (n_heads, seq_len, head_dim).
        28 => q_stride: u32,
    }
}

shared_struct! {
    /// Softmax of each row of a matrix, in place.
    pub struct SoftmaxParams = "SoftmaxParams", size = 16 {
        /// Number of rows, each with a softmax of its own.
        0 => rows: u32,
        /// Elements of a row.
        4 => cols: u32,
        /// Unused, zero.
        8 => _pad0: u32,
        /// Unused, zero.
        12 => _pad1: u32,
    }
}

shared_struct! {
    /// `x = cap * tanh(x / cap)` for each element, in place.
    pub struct LogitSoftcapParams = "LogitSoftcapParams", size = 16 {
        /// The bound, above 0.
        0 => cap: f32,
        /// Number of elements.
        4 => count: u32,
        /// Unused, zero.
        8 => _pad0: u32,
        /// Unused, zero.
        12 => _pad1: u32,
    }
}
