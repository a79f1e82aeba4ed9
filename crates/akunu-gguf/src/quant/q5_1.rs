//! Q5_1: `x = d * q + m`, q from 0 to 31, its fifth bit apart; m is the block's smallest value.

use super::block::Encode;
use super::line::{best_stored_line, ends};
use super::packing::{pack, split};
use super::weights::by_importance;
use akunu_types::format::BlockQ5_1;

impl Encode<32> for BlockQ5_1 {
    fn encode(values: &[f32; 32], importance: Option<&[f32; 32]>) -> Self {
        let (d, m, q) = match importance {
            None => ends(values, 31.0),
            Some(importance) => best_stored_line(values, &by_importance(importance), 31.0),
        };
        let (low, high) = split(&q, 4);
        BlockQ5_1 {
            d,
            m,
            qh: pack::<1, 1, 4, 32>(&high),
            qs: pack::<4, 16, 16, 32>(&low),
        }
    }
}
