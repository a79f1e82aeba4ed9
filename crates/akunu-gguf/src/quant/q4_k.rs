//! Q4_K: `x = d * scale * q - dmin * min`, q from 0 to 15.
//!
//! 8 groups of 32 values, each with a 6-bit scale and a 6-bit minimum.

use super::affine::{Affine, Steps};
use super::block::Encode;
use super::packing::pack;
use super::scales::pack_scales;
use super::weights::weights_with_minima;
use akunu_types::format::BlockQ4K;

/// q up to 15, scales and minima up to 63.
const STEPS: Steps = Steps { q: 15, scale: 63 };

impl Encode<256> for BlockQ4K {
    fn encode(values: &[f32; 256], importance: Option<&[f32; 256]>) -> Self {
        let block: Affine<8> = Affine::fit(values, &weights_with_minima(values, importance), STEPS);
        BlockQ4K {
            d: block.d,
            dmin: block.dmin,
            scales: pack_scales(&block.scales, &block.mins),
            qs: pack::<4, 32, 128, 256>(&block.q),
        }
    }
}
