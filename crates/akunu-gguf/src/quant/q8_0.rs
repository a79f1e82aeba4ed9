//! Q8_0: `x = d * q`, q from -127 to 127. So fine that importances would change nothing.

use super::block::Encode;
use super::rounding::{extreme, inverse};
use akunu_types::format::BlockQ8_0;
use half::f16;

impl Encode<32> for BlockQ8_0 {
    fn encode(values: &[f32; 32], _importance: Option<&[f32; 32]>) -> Self {
        let d = extreme(values).abs() / 127.0;
        let per_step = inverse(d);
        BlockQ8_0 {
            d: f16::from_f32(d),
            qs: values.map(|x| (x * per_step).round() as i8),
        }
    }
}
