//! IQ2_XXS: points of eight magnitudes; for each 32 values a scale of 4 bits and the signs, seven bits for eight of them.

use half::f16;

use super::grid::{self, tables};
use super::{Block, Cell, CellFormat, Codes, Scales};
use crate::layout::shared_struct;

shared_struct! {
    /// 2 bits, 8 groups of 32: `d * (1 + 2 * scale) * number / 8`, with points of eight magnitudes from a grid of 256.
    pub struct BlockIQ2XXS = "block_iq2_xxs", size = 66 {
        /// Scale of the scales.
        0 => d: f16,
        /// Four numbers for each group: in two of them four places in the grid, a byte each; in the others, the low half first, 7 bits
        /// for the signs of each eight values, of which an even number are negative, and 4 for the scale.
        2 => qs: [u16; 32],
    }
}

impl Block for BlockIQ2XXS {
    const NAME: &'static str = "iq2_xxs";
    const ID: u32 = 16;
    const FILE_TYPE: Option<u32> = Some(19);
    const CELLS: usize = 8;
    const FORMAT: CellFormat = CellFormat {
        bits: 4,
        codes: Codes::Table(grid::IQ2_NUMBERS),
        scales: Scales::Signed,
    };

    fn cell(&self, at: usize) -> Cell {
        let [first, second, low, high] = self.qs.as_chunks::<4>().0[at];
        let (places, both) = (grid::word([first, second]), grid::word([low, high]));
        let codes = grid::eights(|eight| {
            let place = places >> (8 * eight) & 255;
            (
                tables::IQ2_XXS[place as usize],
                grid::even(both >> (7 * eight)),
            )
        });
        Cell {
            codes,
            scales: [1 + 2 * (both >> 28) as u16, 0],
            of_block: [self.d.to_bits(), 0],
        }
    }
}
