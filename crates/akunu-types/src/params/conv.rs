//! Parameters of the audio front end's convolution.

use crate::layout::shared_struct;

shared_struct! {
    /// One-dimensional convolution over (in_channels, in_length).
    pub struct Conv1DParams = "Conv1DParams", size = 32 {
        /// Number of input channels.
        0 => in_channels: u32,
        /// Number of output channels (filters).
        4 => out_channels: u32,
        /// Width of a filter.
        8 => kernel_size: u32,
        /// Steps between windows.
        12 => stride: u32,
        /// Steps of the input.
        16 => in_length: u32,
        /// Steps of the output, `(in_length + 2 * padding - kernel_size) / stride + 1`.
        20 => out_length: u32,
        /// Zeros assumed on each side of the input.
        24 => padding: u32,
        /// Unused, zero.
        28 => _pad0: u32,
    }
}
