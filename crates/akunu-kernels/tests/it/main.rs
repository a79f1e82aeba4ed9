//! The tests of kernels, plans and lowering, one module a subject.

mod advance;
mod chips;
mod chosen;
mod cost;
mod grouped_experts;
mod halved_attention;
mod key_centre;
mod kv_shift;
mod lowering;
#[cfg(target_os = "macos")]
mod metal;
mod mlx;
mod on_device;
mod plan;
mod torch;
mod torch_norm;
mod watched;
