//! Parameters of attention and softmax.

use crate::layout::shared_struct;

shared_struct! {
    /// Attention of some rows over the keys and values in the pages of their sequences.
    ///
    /// Query head h reads KV head `h / (n_heads / n_kv_heads)`. Which slots a row sees, its [`Row`](super::Row) says.
    pub struct AttentionParams = "AttentionParams", size = 48 {
        /// Number of rows.
        0 => n_rows: u32,
        /// The first of them in the row table, in Q and in the output.
        4 => first_row: u32,
        /// Number of query heads, a multiple of `n_kv_heads`.
        8 => n_heads: u32,
        /// Number of key and value heads.
        12 => n_kv_heads: u32,
        /// Elements of a head.
        16 => head_dim: u32,
        /// Elements between rows of Q and of the output; 0 means `n_heads * head_dim`.
        20 => q_stride: u32,
        /// A page holds `1 << page_shift` slots, at least 32.
        24 => page_shift: u32,
        /// Pages of a sequence in the page table.
        28 => table_stride: u32,
        /// Pages of the pool.
        32 => n_pages: u32,
        /// Sequences of the page table.
        36 => n_sequences: u32,
        /// Factor of the scores before the softmax, usually `1 / sqrt(head_dim)`.
        40 => scale: f32,
        /// Parts that the keys of a row are split into, where they are; 0 elsewhere.
        44 => n_parts: u32,
    }
}

shared_struct! {
    /// RoPE of some rows, the storing of their keys and values, and their attention.
    ///
    /// q and the output are (n_rows, n_heads, head_dim), k and v are (n_rows, n_kv_heads, head_dim).
    pub struct DecodeAttentionParams = "DecodeAttentionParams", size = 64 {
        /// Number of query heads, a multiple of `n_kv_heads`.
        0 => n_heads: u32,
        /// Number of key and value heads.
        4 => n_kv_heads: u32,
        /// Elements of a head, a multiple of 64.
        8 => head_dim: u32,
        /// A page holds `1 << page_shift` slots, at least 32.
        12 => page_shift: u32,
        /// Pages of a sequence in the page table.
        16 => table_stride: u32,
        /// Pages of the pool.
        20 => n_pages: u32,
        /// Sequences of the page table.
        24 => n_sequences: u32,
        /// Threadgroups that share the keys of a head, at most.
        28 => n_groups: u32,
        /// Base of the frequencies.
        32 => theta: f32,
        /// Linear scaling of positions, `1 / factor`; 1 for none.
        36 => freq_scale: f32,
        /// Added to the mean square before the root, where heads are normalised.
        40 => eps: f32,
        /// Factor of the scores before the softmax, usually `1 / sqrt(head_dim)`.
        44 => scale: f32,
        /// Number of rows, each of a sequence of its own.
        48 => n_rows: u32,
        /// How the output lies. 0: as floats. 1 and 2: as halves in tiles of eight rows, in spans or in columns.
        52 => order: u32,
        /// Elements from one row of halves to the next, a multiple of 128; those behind the last head are zeros.
        56 => half_stride: u32,
        /// SIMD groups of a threadgroup, 4 or 8: no fewer than it has heads.
        60 => n_simd_groups: u32,
    }
}

shared_struct! {
    /// Attention of some rows over the rows of two matrices: those of their own text, or those of an encoder.
    ///
    /// Q and the output are (n_rows, n_heads, head_dim). Query head h reads KV head `h / (n_heads / n_kv_heads)`.
    pub struct RowAttentionParams = "RowAttentionParams", size = 48 {
        /// Number of rows that ask.
        0 => n_rows: u32,
        /// Number of query heads, a multiple of `n_kv_heads`.
        4 => n_heads: u32,
        /// Number of key and value heads.
        8 => n_kv_heads: u32,
        /// Elements of a head.
        12 => head_dim: u32,
        /// 0: K and V have a row for each row that asks, and a row sees those of its own text. Otherwise K and V are
        /// (n_sequences, n_keys, …), and a row sees all `n_keys` of its sequence.
        16 => n_keys: u32,
        /// Sequences that K and V have keys of, where `n_keys` is not 0.
        20 => n_sequences: u32,
        /// Factor of the scores before the softmax, usually `1 / sqrt(head_dim)`.
        24 => scale: f32,
        /// Where `n_keys` is 0: how far away a row of its own text may be that a row sees; 0 for all of them.
        28 => reach: u32,
        /// Where there is a bias: the largest distance that has an entry of its own. Those beyond have the entry of this one.
        32 => bias_reach: u32,
        /// Unused, zero.
        36 => _pad0: u32,
        /// Unused, zero.
        40 => _pad1: u32,
        /// Unused, zero.
        44 => _pad2: u32,
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
