//! Q5_1: 5 bits, a scale and a minimum for each 32 values.

use half::f16;

use super::bits::{bits, join, nibbles};
use super::{Block, Cell, CellFormat, Codes, Scales};
use crate::layout::shared_struct;

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

impl Block for BlockQ5_1 {
    const NAME: &'static str = "q5_1";
    const ID: u32 = 7;
    const FILE_TYPE: Option<u32> = Some(9);
    const CELLS: usize = 1;
    const FORMAT: CellFormat = CellFormat {
        bits: 5,
        codes: Codes::Above(0),
        scales: Scales::WithMin,
    };

    fn cell(&self, _: usize) -> Cell {
        Cell {
            codes: join(nibbles(&self.qs), bits(self.qh), 4),
            scales: [self.d.to_bits(), self.m.to_bits()],
            of_block: [0; 2],
        }
    }
}
