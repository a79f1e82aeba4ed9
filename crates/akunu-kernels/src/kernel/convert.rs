//! Conversions: weights of any format to f16, and f16 to f32.

pub mod dequant;
pub mod f16_to_f32;
