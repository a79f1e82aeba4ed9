//! Q4_1: `x = d * q + m`, q from 0 to 15; m is the block's smallest value.

use super::block::Encode;
use super::packing::pack;
use super::rounding::{inverse, range};
use akunu_types::block::BlockQ4_1;
use half::f16;

impl Encode<32> for BlockQ4_1 {
    fn encode(values: &[f32; 32]) -> Self {
        let (min, max) = range(values);
        let d = (max - min) / 15.0;
        let per_step = inverse(d);
        let q = values.map(|x| (((x - min) * per_step + 0.5) as u8).min(15));
        BlockQ4_1 {
            d: f16::from_f32(d),
            m: f16::from_f32(min),
            qs: pack::<4, 16, 16, 32>(&q),
        }
    }
}
