//! Weights of 4-bit floats with a scale of one byte for each group of a row, of MLX and of `transformers`.
//!
//! The codes of a row are a stream of nibbles, the lower one of a byte first. The scales are an array of their own:
//!
//! | | code | values of a group | scale |
//! |---|---|---|---|
//! | MXFP4 | E2M1 | 32 | E8M0, a power of two |
//! | NVFP4 | E2M1 | 16 | E4M3, an 8-bit float |
//!
//! No device reads them as they lie. MXFP4 becomes GGUF's blocks, which say the same values. There is no such format for NVFP4: it
//! becomes Q8_0, which rounds its values by at most 1/254 of the largest of 32.

use crate::quant::{Part, QuantError, quantise_part};
use crate::span::Span;
use akunu_types::format::{BlockMXFP4, MXFP4_NUMBERS};
use akunu_types::{DType, E8M0};

/// Values of a block of what the weights become.
const BLOCK: usize = 32;
/// Bytes of its codes.
const CODES: usize = BLOCK / 2;

/// A format of 4-bit floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatFormat {
    /// A power of two for each 32 values.
    Mxfp4,
    /// An 8-bit float for each 16 values.
    Nvfp4,
}

impl FloatFormat {
    /// All of them.
    pub(crate) const ALL: [FloatFormat; 2] = [FloatFormat::Mxfp4, FloatFormat::Nvfp4];

    /// The name, as configs have it.
    pub fn name(self) -> &'static str {
        match self {
            FloatFormat::Mxfp4 => "mxfp4",
            FloatFormat::Nvfp4 => "nvfp4",
        }
    }

    /// Values that share a scale.
    pub fn group_size(self) -> usize {
        match self {
            FloatFormat::Mxfp4 => 32,
            FloatFormat::Nvfp4 => 16,
        }
    }

    /// What such weights become.
    pub fn dtype(self) -> DType {
        match self {
            FloatFormat::Mxfp4 => DType::MXFP4,
            FloatFormat::Nvfp4 => DType::Q8_0,
        }
    }
}

/// A weight of 4-bit floats, its parts borrowed from the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FloatTensor<'a> {
    /// The codes, row after row.
    pub packed: Span<'a>,
    /// The scales, row after row.
    pub scales: Span<'a>,
    /// The format.
    pub format: FloatFormat,
}

impl FloatTensor<'_> {
    /// The weight in blocks of [`FloatFormat::dtype`]. A scale that is no number is an error.
    pub(super) fn blocks(&self) -> Result<Vec<u8>, QuantError> {
        let codes = self.packed.bytes.as_chunks::<CODES>().0;
        match self.format {
            FloatFormat::Mxfp4 => {
                let blocks = codes
                    .iter()
                    .zip(self.scales.bytes)
                    .map(|(codes, &e)| BlockMXFP4 {
                        e: E8M0::from_bits(e),
                        qs: in_halves(codes),
                    });
                let blocks: Vec<BlockMXFP4> = blocks.collect();
                Ok(bytemuck::cast_slice(&blocks).to_vec())
            }
            FloatFormat::Nvfp4 => {
                let dtype = self.format.dtype();
                let mut blocks = vec![0; codes.len() * dtype.block_bytes()];
                let scales = self.scales.bytes.as_chunks::<2>().0;
                let to = blocks.chunks_exact_mut(dtype.block_bytes());
                for (at, ((codes, scales), block)) in codes.iter().zip(scales).zip(to).enumerate() {
                    let part = Part {
                        values: &nvfp4_values(codes, *scales),
                        importance: None,
                        first: at * BLOCK,
                    };
                    quantise_part(dtype, part, block)?;
                }
                Ok(blocks)
            }
        }
    }
}

/// Nibbles that follow each other, as GGUF has them: value i in the low nibble of byte i, value 16 + i in its high one.
fn in_halves(codes: &[u8; CODES]) -> [u8; CODES] {
    let all = u128::from_le_bytes(*codes);
    let (first, second) = (spread(all as u64), spread((all >> 64) as u64));
    (first | second << 4).to_le_bytes()
}

/// Nibble i of 16 in byte i.
fn spread(nibbles: u64) -> u128 {
    let steps = [
        (32, 0x0000_0000_ffff_ffff_0000_0000_ffff_ffff),
        (16, 0x0000_ffff_0000_ffff_0000_ffff_0000_ffff),
        (8, 0x00ff_00ff_00ff_00ff_00ff_00ff_00ff_00ff),
        (4, 0x0f0f_0f0f_0f0f_0f0f_0f0f_0f0f_0f0f_0f0f_u128),
    ];
    steps
        .iter()
        .fold(nibbles.into(), |bits: u128, (shift, mask)| {
            (bits | bits << shift) & mask
        })
}

/// The values of two groups: `scale / 2 * number`, exactly.
fn nvfp4_values(codes: &[u8; CODES], scales: [u8; 2]) -> [f32; BLOCK] {
    let scales = scales.map(e4m3);
    std::array::from_fn(|i| {
        let code = codes[i / 2] >> (i % 2 * 4) & 15;
        scales[i / (BLOCK / 2)] / 2.0 * f32::from(MXFP4_NUMBERS[usize::from(code)])
    })
}

/// An 8-bit float: a sign, four bits of an exponent raised by 7, three of a fraction. All ones are no number; there is no infinity.
pub(super) fn e4m3(bits: u8) -> f32 {
    let (exponent, fraction) = (i32::from(bits >> 3 & 15), f32::from(bits & 7));
    let magnitude = match (exponent, bits & 7) {
        (15, 7) => f32::NAN,
        (0, _) => fraction * 2f32.powi(-9),
        _ => (8.0 + fraction) * 2f32.powi(exponent - 10),
    };
    if bits < 128 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nibbles_move_to_the_halves_of_a_block() {
        // Value i has code i % 16, the second half in another order.
        let code = |i: usize| if i < 16 { i } else { 31 - i };
        let codes = std::array::from_fn(|j| (code(2 * j) | code(2 * j + 1) << 4) as u8);
        let expected = std::array::from_fn(|j| (code(j) | code(16 + j) << 4) as u8);
        assert_eq!(in_halves(&codes), expected);
    }

    #[test]
    fn eight_bit_floats_have_the_values_of_the_standard() {
        let some = [0x00, 0x01, 0x07, 0x08, 0x38, 0x3c, 0x7e, 0xb8].map(e4m3);
        let expected = [
            0.0,
            0.001953125,
            0.013671875,
            0.015625,
            1.0,
            1.5,
            448.0,
            -1.0,
        ];
        assert_eq!(some, expected);
        assert!(e4m3(0x7f).is_nan());
    }
}
