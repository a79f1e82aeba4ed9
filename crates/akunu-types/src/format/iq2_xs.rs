//! IQ2_XS: points of eight magnitudes with seven bits for their signs, and a scale of 4 bits for each 16 values.

use half::f16;

use super::grid::{self, tables};
use super::{Block, Cell, CellFormat, Codes, Scales};
use crate::layout::shared_struct;

shared_struct! {
    /// 2 bits, 16 groups of 16: `d * (1 + 2 * scale) * number / 8`, with points of eight magnitudes from a grid of 512.
    pub struct BlockIQ2XS = "block_iq2_xs", size = 74 {
        /// Scale of the scales.
        0 => d: f16,
        /// For each eight values 9 bits for the place in the grid, and 7 for the signs, of which an even number are negative.
        2 => qs: [u16; 32],
        /// Scales: that of an even group in the low nibble.
        66 => scales: [u8; 8],
    }
}

impl Block for BlockIQ2XS {
    const NAME: &'static str = "iq2_xs";
    const ID: u32 = 17;
    const FILE_TYPE: Option<u32> = Some(20);
    const CELLS: usize = 8;
    const FORMAT: CellFormat = CellFormat {
        bits: 4,
        codes: Codes::Table(grid::IQ2_NUMBERS),
        scales: Scales::Halves,
    };

    fn cell(&self, at: usize) -> Cell {
        let codes = grid::eights(|eight| {
            let both = self.qs[4 * at + eight];
            (
                tables::IQ2_XS[usize::from(both & 511)],
                grid::even((both >> 9).into()),
            )
        });
        Cell {
            codes,
            scales: [
                grid::odd_scales([self.scales[at] & 15, self.scales[at] >> 4]),
                0,
            ],
            of_block: [self.d.to_bits(), 0],
        }
    }
}
