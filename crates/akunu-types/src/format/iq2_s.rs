//! IQ2_S: points of eight magnitudes, a sign for each value, and a scale of 4 bits for each 16 values.

use half::f16;

use super::grid::{self, tables};
use super::{Block, Cell, CellFormat, Codes, Scales};
use crate::layout::shared_struct;

shared_struct! {
    /// 2 bits, 16 groups of 16: `d * (1 + 2 * scale) * number / 8`, with points of eight magnitudes from a grid of 1024.
    pub struct BlockIQ2S = "block_iq2_s", size = 82 {
        /// Scale of the scales.
        0 => d: f16,
        /// The low 8 bits of the places in the grid, one for each eight values.
        2 => qs: [u8; 32],
        /// Signs, a bit for each value.
        34 => signs: [u8; 32],
        /// The high two bits of the places, a byte for each 32 values.
        66 => qh: [u8; 8],
        /// Scales: that of an even group in the low nibble.
        74 => scales: [u8; 8],
    }
}

impl Block for BlockIQ2S {
    const NAME: &'static str = "iq2_s";
    const ID: u32 = 22;
    const FILE_TYPE: Option<u32> = Some(28);
    const CELLS: usize = 8;
    const FORMAT: CellFormat = CellFormat {
        bits: 4,
        codes: Codes::Table(grid::IQ2_NUMBERS),
        scales: Scales::Halves,
    };

    fn cell(&self, at: usize) -> Cell {
        let codes = grid::eights(|eight| {
            let high = u16::from(self.qh[at] >> (2 * eight) & 3);
            let place = u16::from(self.qs[4 * at + eight]) | high << 8;
            (
                tables::IQ2_S[usize::from(place)],
                self.signs[4 * at + eight],
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
