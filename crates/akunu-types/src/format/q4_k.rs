//! Q4_K: 4 bits, a scale and a minimum of 6 bits for each 32 values.

use half::f16;

use super::bits::{nibbles_k, scale_and_min};
use super::{Block, Cell, CellFormat, Codes, Scales};
use crate::layout::shared_struct;

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

impl Block for BlockQ4K {
    const NAME: &'static str = "q4_k";
    const ID: u32 = 12;
    const FILE_TYPE: Option<u32> = None;
    const CELLS: usize = 8;
    const FORMAT: CellFormat = CellFormat {
        bits: 4,
        codes: Codes::Above(0),
        scales: Scales::Grouped,
    };

    fn cell(&self, at: usize) -> Cell {
        let (scale, min) = scale_and_min(&self.scales, at);
        Cell {
            codes: nibbles_k(&self.qs, at),
            scales: [u16::from_le_bytes([scale, min]), 0],
            of_block: [self.d.to_bits(), self.dmin.to_bits()],
        }
    }
}
