//! Q5_1: `x = d * q + m`, q from 0 to 31, its fifth bit apart; m is the block's smallest value.

use super::block::Encode;
use super::packing::{pack, split};
use super::rounding::{inverse, range};
use akunu_types::block::BlockQ5_1;
use half::f16;

impl Encode<32> for BlockQ5_1 {
    fn encode(values: &[f32; 32]) -> Self {
        let (min, max) = range(values);
        let d = (max - min) / 31.0;
        let per_step = inverse(d);
        let q = values.map(|x| (((x - min) * per_step + 0.5) as u8).min(31));
        let (low, high) = split(&q, 4);
        BlockQ5_1 {
            d: f16::from_f32(d),
            m: f16::from_f32(min),
            qh: pack::<1, 1, 4, 32>(&high),
            qs: pack::<4, 16, 16, 32>(&low),
        }
    }
}
