//! Conversions of f32 to f16: rows with a factor each, and numbers as they are.

pub mod half_rows;
pub mod halves;
