//! The kernels, a folder a family and a file a kernel.
//!
//! A kernel's file holds the formula (module docs), its row, its geometry, its twin and its cases.

pub mod activation;
pub mod attention;
pub mod common;
pub mod convert;
pub mod embedding;
pub mod experts;
pub mod fused;
pub mod kv_cache;
pub mod matmul;
pub mod norm;
pub mod nvidia;
pub mod pages;
pub mod rope;
pub mod sampling;
pub mod state;
