#![doc = include_str!("../README.md")]

#[cfg(target_arch = "x86_64")]
mod amx;
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
mod number;
mod panels;
mod part;
mod pieces;
mod place;
mod pool;
mod select;
mod simd;
mod slow_build;
mod twin;

/// The crate of the kernels that this device runs; `kernels::program` has `Device`, which it implements.
#[doc(no_inline)]
pub use akunu_kernels as kernels;
pub use barrier_cost::measure_barrier;
pub use cores::default_threads;
pub use device::{CpuDevice, CpuError, CpuOptions};
pub use isa::{Isa, UnknownIsa};
