//! Projections fused with what follows them.

pub mod gemv_head_rmsnorm;
pub mod gemv_kv_write;
pub mod whisper_gemv_fused;
