//! IQ1_M: points of eight numbers -1, 0 or 1, each with an eighth that is added or subtracted, and a scale of 3 bits for each 16
//! values.

use super::grid::{self, tables};
use super::{Block, Cell, CellFormat, Codes, Scales};
use crate::layout::{QuarterF16, shared_struct};

shared_struct! {
    /// 1.75 bits, 16 groups of 16: `d * (1 + 2 * scale) * (number ± 1/8)`, with points of eight numbers from a grid of 2048.
    pub struct BlockIQ1M = "block_iq1_m", size = 56 {
        /// The low 8 bits of the places in the grid, one for each eight values.
        0 => qs: [u8; 32],
        /// A nibble for each eight values, low ones first: the high 3 bits of the place, and one that is set where the eighth is
        /// subtracted.
        32 => qh: [u8; 16],
        /// Four groups each: 3 bits for the scale of each, and in the highest four bits a quarter of `d`.
        48 => scales: [QuarterF16; 4],
    }
}

impl Block for BlockIQ1M {
    const NAME: &'static str = "iq1_m";
    const ID: u32 = 29;
    const FILE_TYPE: Option<u32> = Some(31);
    const CELLS: usize = 8;
    const FORMAT: CellFormat = CellFormat {
        bits: 4,
        codes: Codes::Table(grid::IQ1_NUMBERS),
        scales: Scales::Halves,
    };

    fn cell(&self, at: usize) -> Cell {
        let codes = grid::eights(|eight| {
            let nibble = u16::from(self.qh[2 * at + eight / 2] >> (eight % 2 * 4) & 15);
            let place = u16::from(self.qs[4 * at + eight]) | (nibble & 7) << 8;
            (
                tables::IQ1[usize::from(place)],
                grid::all_if(nibble >> 3 != 0),
            )
        });
        let scales = self.scales[at / 2].0 >> (at % 2 * 6);
        let scales = [scales & 7, scales >> 3 & 7].map(|scale| scale as u8);
        Cell {
            codes,
            scales: [grid::odd_scales(scales), 0],
            of_block: [QuarterF16::join(self.scales).to_bits(), 0],
        }
    }
}
