//! IQ1_S: points of eight numbers -1, 0 or 1, and for each 32 values a scale of 3 bits and an eighth that is added or subtracted.

use half::f16;

use super::grid::{self, tables};
use super::{Block, Cell, CellFormat, Codes, Scales};
use crate::layout::shared_struct;

shared_struct! {
    /// 1.5 bits, 8 groups of 32: `d * (1 + 2 * scale) * (number ± 1/8)`, with points of eight numbers from a grid of 2048.
    pub struct BlockIQ1S = "block_iq1_s", size = 50 {
        /// Scale of the scales.
        0 => d: f16,
        /// The low 8 bits of the places in the grid, one for each eight values.
        2 => qs: [u8; 32],
        /// For each group the high 3 bits of its four places, then 3 bits for the scale, then one that is set where the eighth is
        /// subtracted.
        34 => qh: [u16; 8],
    }
}

impl Block for BlockIQ1S {
    const NAME: &'static str = "iq1_s";
    const ID: u32 = 19;
    const FILE_TYPE: Option<u32> = Some(24);
    const CELLS: usize = 8;
    const FORMAT: CellFormat = CellFormat {
        bits: 4,
        codes: Codes::Table(grid::IQ1_NUMBERS),
        scales: Scales::Signed,
    };

    fn cell(&self, at: usize) -> Cell {
        let high = self.qh[at];
        let codes = grid::eights(|eight| {
            let place = u16::from(self.qs[4 * at + eight]) | (high >> (3 * eight) & 7) << 8;
            (
                tables::IQ1[usize::from(place)],
                grid::all_if(high >> 15 != 0),
            )
        });
        Cell {
            codes,
            scales: [1 + 2 * (high >> 12 & 7), 0],
            of_block: [self.d.to_bits(), 0],
        }
    }
}
