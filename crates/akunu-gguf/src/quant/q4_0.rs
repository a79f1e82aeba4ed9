//! Q4_0: `x = d * (q - 8)`, q from 0 to 15.
//!
//! The value of the largest magnitude becomes -8 steps, so `d = extreme / -8` may be negative.

use super::block::Encode;
use super::packing::pack;
use super::rounding::{extreme, inverse};
use akunu_types::block::BlockQ4_0;
use half::f16;

impl Encode<32> for BlockQ4_0 {
    fn encode(values: &[f32; 32]) -> Self {
        let d = extreme(values) / -8.0;
        let per_step = inverse(d);
        let q = values.map(|x| ((x * per_step + 8.5) as u8).min(15));
        BlockQ4_0 {
            d: f16::from_f32(d),
            qs: pack::<4, 16, 16, 32>(&q),
        }
    }
}
