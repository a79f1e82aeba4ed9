//! Kernels of NVIDIA's GPUs alone, for what MSL cannot say: their tensor cores.
//!
//! The files are MSL but for the header `<akunu_tensor>`, which the simulator and the PTX compiler have and Metal does not.

pub mod tensor_attention;
pub mod tensor_gemm;
