//! Q4_0: 4 bits and a scale for each 32 values.

use half::f16;

use super::bits::nibbles;
use super::{Block, Cell, CellFormat, Codes, Scales};
use crate::layout::shared_struct;

shared_struct! {
    /// 4 bits: `d * (nibble - 8)`. Value j is the low nibble of `qs[j]`, value j + 16 the high one.
    pub struct BlockQ4_0 = "block_q4_0", size = 18 {
        /// Scale.
        0 => d: f16,
        /// Nibbles.
        2 => qs: [u8; 16],
    }
}

impl Block for BlockQ4_0 {
    const NAME: &'static str = "q4_0";
    const ID: u32 = 2;
    const FILE_TYPE: Option<u32> = Some(2);
    const CELLS: usize = 1;
    const FORMAT: CellFormat = CellFormat {
        bits: 4,
        codes: Codes::Above(8),
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
