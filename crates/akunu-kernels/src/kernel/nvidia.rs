//! Kernels of NVIDIA's GPUs alone, for what MSL cannot say: their tensor cores, products of four bytes at once, and threadgroups
//! that wait for each other's results.
//!
//! The files are MSL but for the header `<akunu_tensor>`, which the simulator and the PTX compiler have and Metal does not.

pub mod decode_attention;
pub mod decode_gemm;
pub mod decode_gemv;
pub mod shared_gemm;
pub mod tensor_attention;
pub mod tensor_gemm;
