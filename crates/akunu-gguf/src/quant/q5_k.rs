//! Q5_K: `x = d * scale * q - dmin * min`, q from 0 to 31, its fifth bit apart from the other four.
//!
//! 8 groups of 32 values, each with a 6-bit scale and a 6-bit minimum.

use super::affine::{Affine, Steps};
use super::block::Encode;
use super::packing::{pack, split};
use super::scales::pack_scales;
use super::weights::weights_with_minima;
use akunu_types::format::BlockQ5K;

/// q up to 31, scales and minima up to 63.
const STEPS: Steps = Steps { q: 31, scale: 63 };

impl Encode<256> for BlockQ5K {
    fn encode(values: &[f32; 256], importance: Option<&[f32; 256]>) -> Self {
        let block: Affine<8> = Affine::fit(values, &weights_with_minima(values, importance), STEPS);
        let (low, high) = split(&block.q, 4);
        BlockQ5K {
            d: block.d,
            dmin: block.dmin,
            scales: pack_scales(&block.scales, &block.mins),
            qh: pack::<1, 32, 32, 256>(&high),
            qs: pack::<4, 32, 128, 256>(&low),
        }
    }
}
