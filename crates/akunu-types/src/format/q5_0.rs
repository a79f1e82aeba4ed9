//! Q5_0: 5 bits and a scale for each 32 values.

use half::f16;

use super::bits::{bits, join, nibbles};
use super::{Block, Cell, CellFormat, Codes, Scales};
use crate::layout::shared_struct;

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

impl Block for BlockQ5_0 {
    const NAME: &'static str = "q5_0";
    const ID: u32 = 6;
    const FILE_TYPE: Option<u32> = Some(8);
    const CELLS: usize = 1;
    const FORMAT: CellFormat = CellFormat {
        bits: 5,
        codes: Codes::Above(16),
        scales: Scales::Plain,
    };

    fn cell(&self, _: usize) -> Cell {
        Cell {
            codes: join(nibbles(&self.qs), bits(self.qh), 4),
            scales: [self.d.to_bits(), 0],
            of_block: [0; 2],
        }
    }
}
