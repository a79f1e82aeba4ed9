//! The mixture of experts: each row goes through a few of many feed-forward networks, which a router chooses.
//!
//! ```text
//! ids, w = route(Wrouter x);   y = Σ_i w[i] * Wdown[ids[i]] gate(Wgate[ids[i]] x, Wup[ids[i]] x)
//! ```
//!
//! The matrices of all experts lie in one binding, one behind the other; a row reads those of its own experts alone. Where
//! many rows use an expert, their results are sorted by expert, and those of one are multiplied together.

pub mod expert_down;
pub mod expert_gate;
pub mod expert_gemm;
mod products;
pub mod route_experts;
pub mod select;
pub mod sort_experts;
pub mod weigh_rows;

pub use products::{Experts, HAS_BIASES, HAS_SCALES, gate, gate_code};
