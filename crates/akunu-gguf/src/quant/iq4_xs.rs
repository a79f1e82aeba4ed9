//! IQ4_XS: `x = d * (scale - 32) * numbers[q]`, q from 0 to 15, with the numbers of [`super::iq4_nl`].
//!
//! 8 groups of 32 values, each with a 6-bit scale: the low four bits of all scales, and their high two bits apart from these.

use super::block::Encode;
use super::iq4_nl::{Table, code};
use super::packing::{pack, split};
use super::symmetric::{Groups, Symmetric};
use super::weights::{by_importance, by_square};
use akunu_types::format::BlockIQ4XS;

/// scale - 32 from -32 to 31.
const GROUPS: Groups<Table> = Groups {
    len: 32,
    numbers: Table,
    scale: 32,
};

impl Encode<256> for BlockIQ4XS {
    fn encode(values: &[f32; 256], importance: Option<&[f32; 256]>) -> Self {
        let weights = importance.map_or_else(|| by_square(values), by_importance);
        let block = Symmetric::fit(values, &weights, GROUPS);
        let scales: [u8; 8] = std::array::from_fn(|g| (block.scales[g] + 32) as u8);
        let (low, high) = split(&scales, 4);
        BlockIQ4XS {
            d: block.d,
            scales_h: pack::<2, 1, 2, 8>(&high),
            scales_l: pack::<4, 1, 4, 8>(&low),
            qs: pack::<4, 16, 128, 256>(&block.q.map(|number| code(number.into()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use akunu_types::format::{Block, CELL, IQ4_NL_NUMBERS};

    /// Fails when a scale is stored in the place of another, or loses a bit: each group has one of its own here.
    #[test]
    fn numbers_of_the_table_with_any_scales_are_stored_exactly() {
        let scales = [-32, 31, 5, -20, 17, -1, 8, -9_i8];
        let values: [f32; 256] = std::array::from_fn(|i| {
            0.5 * f32::from(scales[i / CELL]) * f32::from(IQ4_NL_NUMBERS[i % 16])
        });
        let block = BlockIQ4XS::encode(&values, None);
        for (at, values) in values.as_chunks::<CELL>().0.iter().enumerate() {
            let mut found = [0.0; CELL];
            BlockIQ4XS::FORMAT.values(&block.cell(at), &mut found);
            assert_eq!(&found, values, "group {at}");
        }
    }
}
