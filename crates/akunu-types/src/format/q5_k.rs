//! Q5_K: 5 bits, a scale and a minimum of 6 bits for each 32 values.

use half::f16;

use super::bits::{fields, join, nibbles_k, scale_and_min};
use super::{Block, Cell, CellFormat, Codes, Scales};
use crate::layout::shared_struct;

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

impl Block for BlockQ5K {
    const NAME: &'static str = "q5_k";
    const ID: u32 = 13;
    const FILE_TYPE: Option<u32> = None;
    const CELLS: usize = 8;
    const FORMAT: CellFormat = CellFormat {
        bits: 5,
        codes: Codes::Above(0),
        scales: Scales::Grouped,
    };

    fn cell(&self, at: usize) -> Cell {
        let (scale, min) = scale_and_min(&self.scales, at);
        Cell {
            codes: join(nibbles_k(&self.qs, at), fields(&self.qh, at, 1), 4),
            scales: [u16::from_le_bytes([scale, min]), 0],
            of_block: [self.d.to_bits(), self.dmin.to_bits()],
        }
    }
}
