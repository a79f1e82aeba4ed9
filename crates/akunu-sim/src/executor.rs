//! Runs compiled kernels: every GPU thread is a fibre.
//!
//! ```text
//! for each threadgroup                                 (several at a time, on host threads)
//!     until all threads have returned
//!         for each SIMD group                          (ascending, descending or shuffled)
//!             until all its lanes stand at a threadgroup barrier or have returned
//!                 for each lane: run to its next meeting point   (same choice of order)
//!                 all lanes must stand at the same SIMD operation
//!         all SIMD groups must stand at the same barrier
//! ```
//!
//! A thread runs without interruption between meeting points, so the cost of a launch is one fibre
//! switch for each thread and meeting point.

pub(crate) mod abi;
pub(crate) mod arena;
pub(crate) mod buffer;
mod cache;
pub(crate) mod count;
mod delay;
mod denormals;
mod fibre;
pub(crate) mod grid;
pub(crate) mod schedule;
mod stack;
pub(crate) mod threadgroup;
pub(crate) mod trap;

/// What every library is given when it is loaded.
pub(crate) fn fibre_callbacks() -> &'static abi::Callbacks {
    &fibre::CALLBACKS
}
