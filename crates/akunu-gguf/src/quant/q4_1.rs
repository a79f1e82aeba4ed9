//! Q4_1: `x = d * q + m`, q from 0 to 15; m is the block's smallest value.

use super::block::Encode;
use super::line::{best_stored_line, ends};
use super::packing::pack;
use super::weights::by_importance;
use akunu_types::format::BlockQ4_1;

impl Encode<32> for BlockQ4_1 {
    fn encode(values: &[f32; 32], importance: Option<&[f32; 32]>) -> Self {
        let (d, m, q) = match importance {
            None => ends(values, 15.0),
            Some(importance) => best_stored_line(values, &by_importance(importance), 15.0),
        };
        BlockQ4_1 {
            d,
            m,
            qs: pack::<4, 16, 16, 32>(&q),
        }
    }
}
