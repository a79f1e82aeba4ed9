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
        /// 0: silu of the sum; 1: x is b, c and x, and the sum of b * x is multiplied by c.
        20 => gated: u32,
        /// Whether a bias is added.
        24 => has_bias: u32,
        /// Unused, zero.
        28 => _pad0: u32,
    }
}
