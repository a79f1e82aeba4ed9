//! Q3_K: `x = d * (scale - 32) * (q - 4)`, q from 0 to 7, its third bit apart from the other two.
//!
//! 16 groups of 16 values, each with a 6-bit scale: the low four bits of all scales first, then their
//! high two bits.

use super::block::Encode;
use super::packing::{pack, split};
use super::symmetric::{Groups, Integers, Symmetric};
use super::weights::weights_around_zero;
use akunu_types::format::BlockQ3K;

/// q - 4 from -4 to 3, scale - 32 from -32 to 31.
const GROUPS: Groups<Integers> = Groups {
    len: 16,
    numbers: Integers(4.0),
    scale: 32,
};

impl Encode<256> for BlockQ3K {
    fn encode(values: &[f32; 256], importance: Option<&[f32; 256]>) -> Self {
        let block = Symmetric::fit(values, &weights_around_zero(importance), GROUPS);
        let (low, high) = split(&block.q.map(|q| (q + 4) as u8), 2);
        BlockQ3K {
            hmask: pack::<1, 32, 32, 256>(&high),
            qs: pack::<2, 32, 64, 256>(&low),
            scales: pack_scales(&block.scales.map(|scale| (scale + 32) as u8)),
            d: block.d,
        }
    }
}

fn pack_scales(scales: &[u8; 16]) -> [u8; 12] {
    let (low, high) = split(scales, 4);
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&pack::<4, 8, 8, 16>(&low));
    bytes[8..].copy_from_slice(&pack::<2, 4, 4, 16>(&high));
    bytes
}
