//! F32, F16 and BF16: a "block" is one number.

use super::block::Encode;
use half::{bf16, f16};

impl Encode<1> for f32 {
    const LARGEST: f32 = f32::MAX;

    fn encode(&[value]: &[f32; 1], _importance: Option<&[f32; 1]>) -> Self {
        value
    }
}

/// Rounded to the nearest, ties to even.
impl Encode<1> for f16 {
    fn encode(&[value]: &[f32; 1], _importance: Option<&[f32; 1]>) -> Self {
        f16::from_f32(value)
    }
}

/// The upper half of an `f32`. Rounded to the nearest, ties to even.
impl Encode<1> for bf16 {
    const LARGEST: f32 = f32::from_bits(0x7f7f_0000);

    fn encode(&[value]: &[f32; 1], _importance: Option<&[f32; 1]>) -> Self {
        bf16::from_f32(value)
    }
}
