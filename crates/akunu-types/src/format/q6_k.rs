//! Q6_K: 6 bits and a scale of 8 bits for each 16 values.

use half::f16;

use super::bits::{fields, join};
use super::{Block, Cell, CellFormat, Codes, Scales};
use crate::layout::shared_struct;

shared_struct! {
    /// 6 bits, 16 groups of 16: `d * scales[g] * (q - 32)`.
    pub struct BlockQ6K = "block_q6_k", size = 210 {
        /// Low four bits.
        0 => ql: [u8; 128],
        /// High two bits.
        128 => qh: [u8; 64],
        /// Scale of each group of 16.
        192 => scales: [i8; 16],
        /// Scale of the scales.
        208 => d: f16,
    }
}

impl Block for BlockQ6K {
    const NAME: &'static str = "q6_k";
    const ID: u32 = 14;
    const FILE_TYPE: Option<u32> = Some(18);
    const CELLS: usize = 8;
    const FORMAT: CellFormat = CellFormat {
        bits: 6,
        codes: Codes::Above(32),
        scales: Scales::Halves,
    };

    fn cell(&self, at: usize) -> Cell {
        // Each half of 128 has 64 bytes of nibbles and 32 bytes of high bits.
        let (half, quarter) = (at / 4, at % 4);
        let low = fields(
            &self.ql[64 * half + 32 * (quarter % 2)..],
            quarter / 2 * 4,
            15,
        );
        let high = fields(&self.qh[32 * half..], quarter * 2, 3);
        let [first, second] = [2 * at, 2 * at + 1].map(|g| self.scales[g].cast_unsigned());
        Cell {
            codes: join(low, high, 4),
            scales: [u16::from_le_bytes([first, second]), 0],
            of_block: [self.d.to_bits(), 0],
        }
    }
}
