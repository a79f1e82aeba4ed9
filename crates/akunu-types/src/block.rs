//! The quantised blocks of GGUF, byte for byte.
//!
//! A block holds 32 values, a super-block of the K family 256. Names follow ggml; the value that a
//! block stands for is written beside each struct.

mod decode;
mod values;

pub use decode::{Decoder, decoder};
pub use values::{QuantBlock, scale_and_min, scale_q3};

use crate::layout::{SharedStruct, StructLayout, shared_struct};
use half::f16;

/// Values in a plain block.
pub const QK: usize = 32;
/// Values in a super-block of the K family.
pub const QK_K: usize = 256;

shared_struct! {
    /// 4 bits: `d * (nibble - 8)`. Value j is the low nibble of `qs[j]`, value j + 16 the high one.
    pub struct BlockQ4_0 = "block_q4_0", size = 18 {
        /// Scale.
        0 => d: f16,
        /// Nibbles.
        2 => qs: [u8; 16],
    }
}

shared_struct! {
    /// 4 bits with a minimum: `d * nibble + m`. Nibbles as in q4_0.
    pub struct BlockQ4_1 = "block_q4_1", size = 20 {
        /// Scale.
        0 => d: f16,
        /// Minimum.
        2 => m: f16,
        /// Nibbles.
        4 => qs: [u8; 16],
    }
}

shared_struct! {
    /// 5 bits: `d * (q - 16)`. Nibbles as in q4_0; bit j of the little-endian `qh` is the fifth bit of
    /// value j.
    pub struct BlockQ5_0 = "block_q5_0", size = 22 {
        /// Scale.
        0 => d: f16,
        /// Fifth bits.
        2 => qh: [u8; 4],
        /// Nibbles.
        6 => qs: [u8; 16],
    }
}

shared_struct! {
    /// 5 bits with a minimum: `d * q + m`. Bits as in q5_0.
    pub struct BlockQ5_1 = "block_q5_1", size = 24 {
        /// Scale.
        0 => d: f16,
        /// Minimum.
        2 => m: f16,
        /// Fifth bits.
        4 => qh: [u8; 4],
        /// Nibbles.
        8 => qs: [u8; 16],
    }
}

shared_struct! {
    /// 8 bits: `d * q`.
    pub struct BlockQ8_0 = "block_q8_0", size = 34 {
        /// Scale.
        0 => d: f16,
        /// Values.
        2 => qs: [i8; 32],
    }
}

shared_struct! {
    /// 2 bits, 16 groups of 16: `d * (scales[g] & 15) * q - dmin * (scales[g] >> 4)`.
    pub struct BlockQ2K = "block_q2_k", size = 84 {
        /// Scale (low nibble) and minimum (high nibble) of each group of 16.
        0 => scales: [u8; 16],
        /// 2-bit values: byte i of each half holds values i, i + 32, i + 64 and i + 96 of that half.
        16 => qs: [u8; 64],
        /// Scale of the scales.
        80 => d: f16,
        /// Scale of the minima.
        82 => dmin: f16,
    }
}

shared_struct! {
    /// 3 bits, 16 groups of 16: `d * (scale - 32) * (q - 4)`.
    pub struct BlockQ3K = "block_q3_k", size = 110 {
        /// Third bits: bit k of byte i belongs to value `32 * k + i`.
        0 => hmask: [u8; 32],
        /// Low two bits, ordered as in q2_k.
        32 => qs: [u8; 64],
        /// 16 packed 6-bit scales.
        96 => scales: [u8; 12],
        /// Scale of the scales.
        108 => d: f16,
    }
}

shared_struct! {
    /// 4 bits, 8 groups of 32: `d * scale * nibble - dmin * min`.
    pub struct BlockQ4K = "block_q4_k", size = 144 {
        /// Scale of the scales.
        0 => d: f16,
        /// Scale of the minima.
        2 => dmin: f16,
        /// 8 packed 6-bit scales and 8 packed 6-bit minima.
        4 => scales: [u8; 12],
        /// Nibbles: byte i of each run of 32 holds value i (low) and value i + 32 (high) of its 64.
        16 => qs: [u8; 128],
    }
}

shared_struct! {
    /// 5 bits, 8 groups of 32: `d * scale * q - dmin * min`.
    pub struct BlockQ5K = "block_q5_k", size = 176 {
        /// Scale of the scales.
        0 => d: f16,
        /// Scale of the minima.
        2 => dmin: f16,
        /// 8 packed 6-bit scales and 8 packed 6-bit minima.
        4 => scales: [u8; 12],
        /// Fifth bits: bit g of byte i belongs to value `32 * g + i`.
        16 => qh: [u8; 32],
        /// Nibbles, ordered as in q4_k.
        48 => qs: [u8; 128],
    }
}

shared_struct! {
    /// 6 bits, 16 groups of 16: `d * scales[g] * (q - 32)`.
    pub struct BlockQ6K = "block_q6_k", size = 210 {
        /// Low four bits.
        0 => ql: [u8; 128],
        /// High two bits.
        128 => qh: [u8; 64],
        /// Scale of each group of 16.
        192 => scales: [i8; 16],
        /// Scale of the scales.
        208 => d: f16,
    }
}

/// Every quantised block, in the order of the generated header.
pub const ALL: &[StructLayout] = &[
    BlockQ4_0::LAYOUT,
    BlockQ4_1::LAYOUT,
    BlockQ5_0::LAYOUT,
    BlockQ5_1::LAYOUT,
    BlockQ8_0::LAYOUT,
    BlockQ2K::LAYOUT,
    BlockQ3K::LAYOUT,
    BlockQ4K::LAYOUT,
    BlockQ5K::LAYOUT,
    BlockQ6K::LAYOUT,
];
