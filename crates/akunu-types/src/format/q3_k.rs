//! Q3_K: 3 bits and a scale of 6 bits for each 16 values.

use half::f16;

use super::bits::{fields, join, scale_q3, two_bits};
use super::{Block, Cell, CellFormat, Codes, Scales};
use crate::layout::shared_struct;

shared_struct! {
    /// 3 bits, 16 groups of 16: `d * (scale - 32) * (q - 4)`.
    pub struct BlockQ3K = "block_q3_k", size = 110 {
        /// Third bits: bit k of byte i belongs to value `32 * k + i`.
        0 => hmask: [u8; 32],
        /// Low two bits, ordered as in q2_k.
        32 => qs: [u8; 64],
        /// 16 packed 6-bit scales.
        96 => scales: [u8; 12],
        /// Scale of the scales.
        108 => d: f16,
    }
}

impl Block for BlockQ3K {
    const NAME: &'static str = "q3_k";
    const ID: u32 = 11;
    const FILE_TYPE: Option<u32> = None;
    const CELLS: usize = 8;
    const FORMAT: CellFormat = CellFormat {
        bits: 3,
        codes: Codes::Above(4),
        scales: Scales::Halves,
    };

    fn cell(&self, at: usize) -> Cell {
        let scale = |half| scale_q3(&self.scales, 2 * at + half).wrapping_sub(32);
        Cell {
            codes: join(two_bits(&self.qs, at), fields(&self.hmask, at, 1), 2),
            scales: [u16::from_le_bytes([scale(0), scale(1)]), 0],
            of_block: [self.d.to_bits(), 0],
        }
    }
}
