//! Q2_K: `x = d * scale * q - dmin * min`, q from 0 to 3.
//!
//! 16 groups of 16 values, each with a 4-bit scale and a 4-bit minimum.

use super::affine::{Affine, Steps};
use super::block::Encode;
use super::packing::{join, pack};
use super::weights::weights_with_minima;
use akunu_types::format::BlockQ2K;

/// q up to 3, scales and minima up to 15.
const STEPS: Steps = Steps { q: 3, scale: 15 };

impl Encode<256> for BlockQ2K {
    fn encode(values: &[f32; 256], importance: Option<&[f32; 256]>) -> Self {
        let block: Affine<16> =
            Affine::fit(values, &weights_with_minima(values, importance), STEPS);
        BlockQ2K {
            scales: join(&block.scales, &block.mins, 4),
            qs: pack::<2, 32, 64, 256>(&block.q),
            d: block.d,
            dmin: block.dmin,
        }
    }
}
