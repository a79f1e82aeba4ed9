//! Conversions: weights of any format to f16, f16 to f32, and rows of f32 to f16 with a factor.

pub mod dequant;
pub mod f16_to_f32;
pub mod half_rows;
