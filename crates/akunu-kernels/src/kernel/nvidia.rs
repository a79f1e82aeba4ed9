//! Kernels of NVIDIA's GPUs alone, for what MSL cannot say: their tensor cores, and products of four bytes at once.
//!
//! The files are MSL but for the header `<akunu_tensor>`, which the simulator and the PTX compiler have and Metal does not.

pub mod decode_gemv;
pub mod tensor_attention;
pub mod tensor_gemm;
