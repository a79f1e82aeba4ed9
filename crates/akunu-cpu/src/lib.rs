//! The CPU device: runs plans on all cores of the machine.
//!
//! * [`CpuDevice`] owns the buffers and hands a whole chain of positions to the threads as one job.
//! * `pool` has the threads: each walks through the plan by itself and does its `part` of every dispatch;
//!   they meet only at the barriers that the plan asks for.
//! * `select` chooses a kernel for each row of the kernel table and each level of instructions
//!   ([`Isa`]). A kernel that has no fast form here runs its twin, so that every plan runs.
//! * `matmul` has the matrix products and their layout of weights; `tiles` the tile instructions of some CPUs.
//! * [`bandwidth`] measures how fast memory is read: the floor of decoding; [`measure_barrier`] what it costs that
//!   threads wait for each other.
//!
//! Unsafe code rests on three facts: a checked plan touches nothing outside of its buffers, a barrier
//! stands wherever two dispatches touch the same bytes, and within a dispatch the parts write ranges
//! that do not overlap.

pub mod bandwidth;
mod barrier;
mod barrier_cost;
mod body;
mod call;
mod cores;
mod crowd;
mod device;
mod gate;
mod isa;
mod join;
mod kept;
mod kernel;
mod matmul;
mod memory;
mod part;
mod pieces;
mod place;
mod pool;
mod select;
mod simd;
#[cfg(target_arch = "x86_64")]
mod tiles;
mod twin;

pub use barrier_cost::measure_barrier;
pub use cores::default_threads;
pub use device::{CpuDevice, CpuError, CpuOptions};
pub use isa::{Isa, UnknownIsa};
