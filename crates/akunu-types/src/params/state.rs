//! Parameters of layers with a state of fixed size.

use crate::layout::shared_struct;

shared_struct! {
    /// A causal convolution of each channel over the last tokens of its sequence.
    pub struct ShortConvParams = "ShortConvParams", size = 32 {
        /// Number of rows.
        0 => n_rows: u32,
        /// Elements from one row of x to the next.
        4 => stride: u32,
        /// Channels.
        8 => width: u32,
        /// Tokens that a result depends on, 2 to 4.
        12 => taps: u32,
        /// Blocks of states, at most 65535.
        16 => n_blocks: u32,
        /// 0: silu of the sum; 1: x is b, c and x, and the sum of b * x is multiplied by c; 2: the sum as it is.
        20 => form: u32,
        /// Whether a bias is added.
        24 => has_bias: u32,
        /// Unused, zero.
        28 => _pad0: u32,
    }
}

shared_struct! {
    /// The gated delta rule.
    pub struct DeltaRuleParams = "DeltaRuleParams", size = 32 {
        /// Number of rows.
        0 => n_rows: u32,
        /// Heads of queries and keys.
        4 => key_heads: u32,
        /// Heads of values, a multiple of the others.
        8 => value_heads: u32,
        /// Elements of every head, a multiple of 32, at most 256.
        12 => head_dim: u32,
        /// Blocks of states, at most 65535.
        16 => n_blocks: u32,
        /// 0: value head h reads key head h mod key_heads; 1: h div (value_heads / key_heads).
        20 => grouped: u32,
        /// Added under the roots.
        24 => eps: f32,
        /// Unused, zero.
        28 => _pad0: u32,
    }
}

shared_struct! {
    /// Mamba-2.
    pub struct SsdParams = "SsdParams", size = 32 {
        /// Number of rows.
        0 => n_rows: u32,
        /// Heads.
        4 => heads: u32,
        /// Elements of a head.
        8 => head_dim: u32,
        /// Groups of heads.
        12 => groups: u32,
        /// Numbers that each element remembers, a multiple of 32, at most 256.
        16 => state_size: u32,
        /// Blocks of states, at most 65535.
        20 => n_blocks: u32,
        /// Elements from one row of dt to the next.
        24 => dt_stride: u32,
        /// Unused, zero.
        28 => _pad0: u32,
    }
}

shared_struct! {
    /// The norm of pieces of a row, and a gate.
    pub struct GatedNormParams = "GatedNormParams", size = 32 {
        /// Number of rows.
        0 => n_rows: u32,
        /// Pieces of a row.
        4 => pieces: u32,
        /// Elements of a piece.
        8 => width: u32,
        /// Elements from one row of gates to the next.
        12 => gate_stride: u32,
        /// Whether the gate comes before the norm.
        16 => gate_first: u32,
        /// Whether every piece has weights of its own.
        20 => own_weights: u32,
        /// Added under the root.
        24 => eps: f32,
        /// Unused, zero.
        28 => _pad0: u32,
    }
}

shared_struct! {
    /// Heads that have two halves each, which are taken apart.
    pub struct SplitHeadsParams = "SplitHeadsParams", size = 16 {
        /// Number of rows.
        0 => n_rows: u32,
        /// Heads.
        4 => n_heads: u32,
        /// Elements of a half.
        8 => head_dim: u32,
        /// Unused, zero.
        12 => _pad0: u32,
    }
}
