//! Q4_0: `x = d * (q - 8)`, q from 0 to 15.
//!
//! The value of the largest magnitude becomes -8 steps, so `d = extreme / -8` may be negative. With importances
//! the step is the best of several, by least squares.

use super::block::Encode;
use super::packing::pack;
use super::symmetric::{best_stored_step, step_of_extreme};
use super::weights::by_importance;
use akunu_types::format::BlockQ4_0;

impl Encode<32> for BlockQ4_0 {
    fn encode(values: &[f32; 32], importance: Option<&[f32; 32]>) -> Self {
        let (d, per_step) = match importance {
            None => step_of_extreme(values, 8.0),
            Some(importance) => best_stored_step(values, &by_importance(importance), 8.0),
        };
        let q = values.map(|x| ((x * per_step + 8.5) as u8).min(15));
        BlockQ4_0 {
            d,
            qs: pack::<4, 16, 16, 32>(&q),
        }
    }
}
