//! Parameters of rotary position embedding.
//!
//! The pair d of a head turns by `pos * freq_scale / divisor[d]`, where `divisor[d]` comes from the
//! frequency table or is `theta ^ (2d / head_dim)`.

use crate::layout::shared_struct;

shared_struct! {
    /// RoPE alone, in place over (n_rows, n_heads, head_dim): each row turns by its own position.
    pub struct RoPEParams = "RoPEParams", size = 32 {
        /// Number of rows (tokens).
        0 => n_rows: u32,
        /// Elements of a head; half as many pairs are rotated.
        4 => head_dim: u32,
        /// Number of heads of a row.
        8 => n_heads: u32,
        /// Unused, zero.
        12 => _pad0: u32,
        /// Base of the frequencies.
        16 => theta: f32,
        /// Elements between rows; 0 means `n_heads * head_dim`.
        20 => row_stride: u32,
        /// Linear scaling of positions, `1 / factor`; 1 for none.
        24 => freq_scale: f32,
        /// Unused, zero.
        28 => _pad1: u32,
    }
}

shared_struct! {
    /// RoPE alone, in place over (n_rows, n_heads, head_dim), where rows of images have positions on three axes.
    pub struct RoPEAxesParams = "RoPEAxesParams", size = 48 {
        /// Number of rows.
        0 => n_rows: u32,
        /// Elements of a head; half as many pairs are rotated.
        4 => head_dim: u32,
        /// Number of heads of a row.
        8 => n_heads: u32,
        /// Base of the frequencies.
        12 => theta: f32,
        /// Linear scaling of positions, `1 / factor`; 1 for none.
        16 => freq_scale: f32,
        /// Pairs that turn by time.
        20 => time_pairs: u32,
        /// Pairs that turn by height.
        24 => height_pairs: u32,
        /// Pairs that turn by width.
        28 => width_pairs: u32,
        /// 1: the pairs of the axes take turns; 0: those of an axis follow each other.
        32 => is_interleaved: u32,
        /// Unused, zero.
        36 => _pad0: u32,
        /// Unused, zero.
        40 => _pad1: u32,
        /// Unused, zero.
        44 => _pad2: u32,
    }
}

shared_struct! {
    /// RoPE of q and k of some rows, fused with the storing of k and v in the pages of their sequences.
    ///
    /// q is (n_rows, n_heads, head_dim), k and v are (n_rows, n_kv_heads, head_dim). Also read by the kernel that normalises
    /// each head of q and k before it turns them.
    pub struct RopeStoreParams = "RopeStoreParams", size = 64 {
        /// Number of rows.
        0 => n_rows: u32,
        /// Number of query heads.
        4 => n_heads: u32,
        /// Number of key and value heads.
        8 => n_kv_heads: u32,
        /// Elements of a head.
        12 => head_dim: u32,
        /// Elements between rows of q; 0 means `n_heads * head_dim`.
        16 => q_stride: u32,
        /// Elements between rows of k and of v; 0 means `n_kv_heads * head_dim`.
        20 => kv_stride: u32,
        /// A page holds `1 << page_shift` slots, at least 32.
        24 => page_shift: u32,
        /// Pages of a sequence in the page table.
        28 => table_stride: u32,
        /// Pages of the pool.
        32 => n_pages: u32,
        /// Sequences of the page table.
        36 => n_sequences: u32,
        /// Base of the frequencies.
        40 => theta: f32,
        /// Linear scaling of positions, `1 / factor`; 1 for none.
        44 => freq_scale: f32,
        /// Added to the mean square before the root, where heads are normalised.
        48 => eps: f32,
        /// Unused, zero.
        52 => _pad0: u32,
        /// Unused, zero.
        56 => _pad1: u32,
        /// Unused, zero.
        60 => _pad2: u32,
    }
}

shared_struct! {
    /// Turns the heads of rows by cosines and sines that the host has computed.
    ///
    /// x is (n_rows, n_heads, head_dim), turns are (n_rows, head_dim): the cosines of a row's pairs, then their sines.
    pub struct TurnHeadsParams = "TurnHeadsParams", size = 16 {
        /// Number of rows.
        0 => n_rows: u32,
        /// Heads of a row.
        4 => n_heads: u32,
        /// Elements of a head, an even number.
        8 => head_dim: u32,
        /// Unused, zero.
        12 => _pad0: u32,
    }
}

shared_struct! {
    /// Multiplies queries by factors of their positions and of the elements that turn.
    ///
    /// q is (n_rows, n_heads, head_dim). With `t = 1 + temperature * ln(1 + position / period)`, where the division is that of whole
    /// numbers, elements from the first on that turn are multiplied by `t * turned_factor`, the others by `t`.
    pub struct ScaleQueriesParams = "ScaleQueriesParams", size = 32 {
        /// Number of rows.
        0 => n_rows: u32,
        /// Number of query heads.
        4 => n_heads: u32,
        /// Elements of a head.
        8 => head_dim: u32,
        /// Elements of a head that turn.
        12 => turned_dim: u32,
        /// The factor of those that turn.
        16 => turned_factor: f32,
        /// How much the factor grows with the position.
        20 => temperature: f32,
        /// Positions with the same factor, at least 1.
        24 => period: u32,
        /// Unused, zero.
        28 => _pad0: u32,
    }
}
