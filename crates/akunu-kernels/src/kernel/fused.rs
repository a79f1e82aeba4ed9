//! Projections fused with what comes before them.

pub mod norm_gemv;
