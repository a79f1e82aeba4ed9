//! IQ3_XXS: points of four magnitudes; for each 32 values a scale of 4 bits and the signs, seven bits for eight of them.

use half::f16;

use super::grid::{self, tables};
use super::{Block, Cell, CellFormat, Codes, Numbers, Scales};
use crate::layout::shared_struct;

/// The numbers of the codes, four times as large as they are.
const NUMBERS: [i8; 16] = grid::signed([4, 12, 20, 28, 36, 44, 52, 62]);

shared_struct! {
    /// 3 bits, 8 groups of 32: `d * (1 + 2 * scale) * number / 4`, with points of four magnitudes from a grid of 256.
    pub struct BlockIQ3XXS = "block_iq3_xxs", size = 98 {
        /// Scale of the scales.
        0 => d: f16,
        /// Places in the grid, 8 for each group.
        2 => qs: [u8; 64],
        /// 32 bits for each group, the low half first: 7 for the signs of each eight values, of which an even number are
        /// negative, and 4 for the scale.
        66 => signs_and_scale: [u16; 16],
    }
}

impl Block for BlockIQ3XXS {
    const NAME: &'static str = "iq3_xxs";
    const ID: u32 = 18;
    const FILE_TYPE: Option<u32> = Some(23);
    const CELLS: usize = 8;
    const FORMAT: CellFormat = CellFormat {
        bits: 4,
        codes: Codes::Table(Numbers {
            of_codes: &NUMBERS,
            halvings: 2,
        }),
        scales: Scales::Signed,
    };

    fn cell(&self, at: usize) -> Cell {
        let both = grid::word([
            self.signs_and_scale[2 * at],
            self.signs_and_scale[2 * at + 1],
        ]);
        let codes = grid::fours(|four| {
            let signs = grid::even(both >> (7 * (four / 2))) >> (four % 2 * 4);
            (tables::IQ3_XXS[usize::from(self.qs[8 * at + four])], signs)
        });
        Cell {
            codes,
            scales: [1 + 2 * (both >> 28) as u16, 0],
            of_block: [self.d.to_bits(), 0],
        }
    }
}
