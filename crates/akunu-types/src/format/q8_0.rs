//! Q8_0: 8 bits and a scale for each 32 values.

use half::f16;

use super::{Block, Cell, CellFormat, Codes, Scales};
use crate::layout::shared_struct;

shared_struct! {
    /// 8 bits: `d * q`.
    pub struct BlockQ8_0 = "block_q8_0", size = 34 {
        /// Scale.
        0 => d: f16,
        /// Values.
        2 => qs: [i8; 32],
    }
}

impl Block for BlockQ8_0 {
    const NAME: &'static str = "q8_0";
    const ID: u32 = 8;
    const FILE_TYPE: Option<u32> = Some(7);
    const CELLS: usize = 1;
    const FORMAT: CellFormat = CellFormat {
        bits: 8,
        codes: Codes::Above(128),
        scales: Scales::Plain,
    };

    fn cell(&self, _: usize) -> Cell {
        Cell {
            codes: self.qs.map(|q| q.cast_unsigned() ^ 128),
            scales: [self.d.to_bits(), 0],
            of_block: [0; 2],
        }
    }
}
