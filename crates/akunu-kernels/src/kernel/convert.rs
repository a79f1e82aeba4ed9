//! Conversions: rows of f32 to f16 with a factor.

pub mod half_rows;
