//! Q2_K: 2 bits, a scale and a minimum of 4 bits for each 16 values.

use half::f16;

use super::bits::two_bits;
use super::{Block, Cell, CellFormat, Codes, Scales};
use crate::layout::shared_struct;

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

impl Block for BlockQ2K {
    const NAME: &'static str = "q2_k";
    const ID: u32 = 10;
    const FILE_TYPE: Option<u32> = None;
    const CELLS: usize = 8;
    const FORMAT: CellFormat = CellFormat {
        bits: 2,
        codes: Codes::Above(0),
        scales: Scales::HalvesWithMin,
    };

    fn cell(&self, at: usize) -> Cell {
        Cell {
            codes: two_bits(&self.qs, at),
            scales: [
                u16::from_le_bytes([self.scales[2 * at], self.scales[2 * at + 1]]),
                0,
            ],
            of_block: [self.d.to_bits(), self.dmin.to_bits()],
        }
    }
}
