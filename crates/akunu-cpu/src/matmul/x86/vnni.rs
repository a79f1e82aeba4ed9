//! AVX-VNNI: the loops of AVX2, with a multiplication and an addition in one instruction.

pub mod int16_gemm;
pub mod int8_gemm;
