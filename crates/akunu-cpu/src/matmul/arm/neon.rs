//! NEON: registers of four rows.

mod block;
mod cell;
pub mod gemv;
mod int16_cell;
pub mod int16_gemm;
mod kind;
mod multiply;
mod quantise;
mod sdot;
mod smlal;
mod smmla;
