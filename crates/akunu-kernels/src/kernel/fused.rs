//! Projections fused with what comes before or after them.

pub mod gemv_head_rmsnorm;
pub mod gemv_kv_write;
pub mod norm_gemv;
pub mod whisper_gemv_fused;
