//! AMX: products of tiles.

pub mod bf16_gemm;
mod expand;
pub mod float_gemm;
pub mod small_gemm;
