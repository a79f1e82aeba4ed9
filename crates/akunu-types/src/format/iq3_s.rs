//! IQ3_S: points of four magnitudes, a sign for each value, and a scale of 4 bits for each 32 values.

use half::f16;

use super::grid::{self, tables};
use super::{Block, Cell, CellFormat, Codes, Numbers, Scales};
use crate::layout::shared_struct;

/// The numbers of the codes.
const NUMBERS: [i8; 16] = grid::signed([1, 3, 5, 7, 9, 11, 13, 15]);

shared_struct! {
    /// 3 bits, 8 groups of 32: `d * (1 + 2 * scale) * number`, with points of four magnitudes from a grid of 512.
    pub struct BlockIQ3S = "block_iq3_s", size = 110 {
        /// Scale of the scales.
        0 => d: f16,
        /// The low 8 bits of the places in the grid, 8 for each group.
        2 => qs: [u8; 64],
        /// The ninth bits, a byte for each group.
        66 => qh: [u8; 8],
        /// Signs, a bit for each value.
        74 => signs: [u8; 32],
        /// Scales: that of an even group in the low nibble.
        106 => scales: [u8; 4],
    }
}

impl Block for BlockIQ3S {
    const NAME: &'static str = "iq3_s";
    const ID: u32 = 21;
    const FILE_TYPE: Option<u32> = Some(26);
    const CELLS: usize = 8;
    const FORMAT: CellFormat = CellFormat {
        bits: 4,
        codes: Codes::Table(Numbers::whole(&NUMBERS)),
        scales: Scales::Signed,
    };

    fn cell(&self, at: usize) -> Cell {
        let scale = self.scales[at / 2] >> (at % 2 * 4) & 15;
        let codes = grid::fours(|four| {
            let high = u16::from(self.qh[at] >> four & 1);
            let place = u16::from(self.qs[8 * at + four]) | high << 8;
            let signs = self.signs[4 * at + four / 2] >> (four % 2 * 4);
            (tables::IQ3_S[usize::from(place)], signs)
        });
        Cell {
            codes,
            scales: [u16::from(1 + 2 * scale), 0],
            of_block: [self.d.to_bits(), 0],
        }
    }
}
