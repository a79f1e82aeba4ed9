//! IQ4_NL: 4 bits and a scale for each 32 values; a code is a place in a table whose numbers lie closer around zero.

use half::f16;

use super::bits::nibbles;
use super::{Block, Cell, CellFormat, Codes, Numbers, Scales};
use crate::layout::shared_struct;

/// The numbers of the codes, in ascending order.
pub const IQ4_NL_NUMBERS: [i8; 16] = [
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
];

shared_struct! {
    /// 4 bits: `d * numbers[nibble]`, with a table of 16 numbers. Nibbles as in q4_0.
    pub struct BlockIQ4NL = "block_iq4_nl", size = 18 {
        /// Scale.
        0 => d: f16,
        /// Nibbles.
        2 => qs: [u8; 16],
    }
}

impl Block for BlockIQ4NL {
    const NAME: &'static str = "iq4_nl";
    const ID: u32 = 20;
    const FILE_TYPE: Option<u32> = Some(25);
    const CELLS: usize = 1;
    const FORMAT: CellFormat = CellFormat {
        bits: 4,
        codes: Codes::Table(Numbers::whole(&IQ4_NL_NUMBERS)),
        scales: Scales::Plain,
    };

    fn cell(&self, _: usize) -> Cell {
        Cell {
            codes: nibbles(&self.qs),
            scales: [self.d.to_bits(), 0],
            of_block: [0; 2],
        }
    }
}
