//! AVX-512 with VNNI: registers of sixteen rows.

pub mod cells;
pub mod gemv;
pub mod int16_gemm;
pub mod int8_gemm;
pub mod scales;
