//! MXFP4: 4-bit floats with a power of two for each 32 values, as gpt-oss has them.
//!
//! A 4-bit float is one of 0, 0.5, 1, 1.5, 2, 3, 4 and 6, with a sign. The table has them doubled, so that they are integers,
//! and the scale is halved instead.

use super::bits::nibbles;
use super::{Block, Cell, CellFormat, Codes, Numbers, Scales};
use crate::e8m0::E8M0;
use crate::layout::shared_struct;

/// The numbers of the codes: 4-bit floats, doubled.
pub const MXFP4_NUMBERS: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

shared_struct! {
    /// 4 bits: `scale / 2 * numbers[nibble]`, with a table of 16 numbers. Nibbles as in q4_0.
    pub struct BlockMXFP4 = "block_mxfp4", size = 17 {
        /// Exponent of the scale, `2^(e - 127)`.
        0 => e: E8M0,
        /// Nibbles.
        1 => qs: [u8; 16],
    }
}

impl Block for BlockMXFP4 {
    const NAME: &'static str = "mxfp4";
    const ID: u32 = 39;
    const FILE_TYPE: Option<u32> = None;
    const CELLS: usize = 1;
    const FORMAT: CellFormat = CellFormat {
        bits: 4,
        codes: Codes::Table(Numbers::whole(&MXFP4_NUMBERS)),
        scales: Scales::Power,
    };

    fn cell(&self, _: usize) -> Cell {
        Cell {
            codes: nibbles(&self.qs),
            scales: [self.e.to_bits().into(), 0],
            of_block: [0; 2],
        }
    }
}
