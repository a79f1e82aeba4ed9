//! Q5_0: `x = d * (q - 16)`, q from 0 to 31, its fifth bit apart from the other four.
//!
//! As in q4_0, the value of the largest magnitude becomes -16 steps; with importances the step is
//! the best of several, by least squares.

use super::block::Encode;
use super::packing::{pack, split};
use super::symmetric::{best_stored_step, step_of_extreme};
use super::weights::by_importance;
use akunu_types::format::BlockQ5_0;

impl Encode<32> for BlockQ5_0 {
    fn encode(values: &[f32; 32], importance: Option<&[f32; 32]>) -> Self {
        let (d, per_step) = match importance {
            None => step_of_extreme(values, 16.0),
            Some(importance) => best_stored_step(values, &by_importance(importance), 16.0),
        };
        let q = values.map(|x| ((x * per_step + 16.5) as u8).min(31));
        let (low, high) = split(&q, 4);
        BlockQ5_0 {
            d,
            qh: pack::<1, 1, 4, 32>(&high),
            qs: pack::<4, 16, 16, 32>(&low),
        }
    }
}
