//! Q6_K: `x = d * scale * (q - 32)`, q from 0 to 63, its high two bits apart from the other four.
//!
//! 16 groups of 16 values, each with a signed 8-bit scale.

use super::block::Encode;
use super::packing::{pack, split};
use super::symmetric::{Groups, Integers, Symmetric};
use super::weights::weights_around_zero;
use akunu_types::format::BlockQ6K;

/// q - 32 from -32 to 31, scales from -128 to 127.
const GROUPS: Groups<Integers> = Groups {
    len: 16,
    numbers: Integers(32.0),
    scale: 128,
};

impl Encode<256> for BlockQ6K {
    fn encode(values: &[f32; 256], importance: Option<&[f32; 256]>) -> Self {
        let block = Symmetric::fit(values, &weights_around_zero(importance), GROUPS);
        let (low, high) = split(&block.q.map(|q| (q + 32) as u8), 4);
        BlockQ6K {
            ql: pack::<4, 64, 128, 256>(&low),
            qh: pack::<2, 32, 64, 256>(&high),
            scales: block.scales,
            d: block.d,
        }
    }
}
