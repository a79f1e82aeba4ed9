//! AVX2: registers of eight rows.

pub mod cells;
pub mod gemv;
pub mod int16_gemm;
pub mod int8_gemm;
pub mod quantise;
pub mod scales;
