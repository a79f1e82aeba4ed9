//! Q4_1: 4 bits, a scale and a minimum for each 32 values.

use half::f16;

use super::bits::nibbles;
use super::{Block, Cell, CellFormat, Codes, Scales};
use crate::layout::shared_struct;

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

impl Block for BlockQ4_1 {
    const NAME: &'static str = "q4_1";
    const ID: u32 = 3;
    const FILE_TYPE: Option<u32> = Some(3);
    const CELLS: usize = 1;
    const FORMAT: CellFormat = CellFormat {
        bits: 4,
        codes: Codes::Above(0),
        scales: Scales::WithMin,
    };

    fn cell(&self, _: usize) -> Cell {
        Cell {
            codes: nibbles(&self.qs),
            scales: [self.d.to_bits(), self.m.to_bits()],
            of_block: [0; 2],
        }
    }
}
