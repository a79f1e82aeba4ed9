//! IQ4_XS: the codes of IQ4_NL, with a scale of 6 bits for each 32 values.

use half::f16;

use super::bits::nibbles;
use super::{Block, Cell, CellFormat, Codes, IQ4_NL_NUMBERS, Numbers, Scales};
use crate::layout::shared_struct;

shared_struct! {
    /// 4 bits, 8 groups of 32: `d * (scale - 32) * numbers[nibble]`, with the table of iq4_nl. Nibbles of a group as in q4_0.
    pub struct BlockIQ4XS = "block_iq4_xs", size = 136 {
        /// Scale of the scales.
        0 => d: f16,
        /// High two bits of the scales: bits `2 * k` of the 16 belong to group k.
        2 => scales_h: [u8; 2],
        /// Low four bits of the scales: those of groups `2 * i` and `2 * i + 1` in byte i.
        4 => scales_l: [u8; 4],
        /// Nibbles, 16 bytes a group.
        8 => qs: [u8; 128],
    }
}

impl Block for BlockIQ4XS {
    const NAME: &'static str = "iq4_xs";
    const ID: u32 = 23;
    const FILE_TYPE: Option<u32> = Some(30);
    const CELLS: usize = 8;
    const FORMAT: CellFormat = CellFormat {
        bits: 4,
        codes: Codes::Table(Numbers::whole(&IQ4_NL_NUMBERS)),
        scales: Scales::Signed,
    };

    fn cell(&self, at: usize) -> Cell {
        let low = self.scales_l[at / 2] >> (at % 2 * 4) & 15;
        let high = self.scales_h[at / 4] >> (at % 4 * 2) & 3;
        let scale = (low | high << 4).wrapping_sub(32);
        Cell {
            codes: nibbles(&self.qs.as_chunks().0[at]),
            scales: [scale.into(), 0],
            of_block: [self.d.to_bits(), 0],
        }
    }
}
