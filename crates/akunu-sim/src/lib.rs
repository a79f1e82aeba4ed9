//! Runs the real `.metal` files on a CPU, and compiles them to PTX.
//!
//! clang compiles each file as C++ against our own `metal_stdlib` (the `shim/` folder); every GPU thread
//! is a fibre, SIMD groups have 32 lanes, and what a GPU would silently get wrong is an error that names
//! the kernel, the threadgroup, the thread and, where it is known, the source line:
//!
//! - a barrier or SIMD operation that not all threads reach,
//! - a read or write outside a binding, a write to a read-only one,
//! - a misaligned vector access, an out-of-range shift or array index,
//! - threadgroup memory written outside its arrays, or more than 32 KB of it,
//! - threadgroup memory read before it was written (it holds NaN),
//! - a function constant without a value.
//!
//! [`Schedule`] chooses the order in which lanes, SIMD groups and threadgroups run. A kernel whose result
//! depends on it lacks a barrier.
//!
//! What the shim cannot do: overloads that differ only in the address space of a pointer, C casts of
//! vectors (`(float4)x`: write `float4(x)`), and, in the PTX compiler, copies of whole structs out of
//! `device` or `constant` memory (read their fields instead).
//!
//! ```no_run
//! use akunu_sim::{Binding, Launch, SimBuffer, Simulator};
//! use std::path::Path;
//!
//! let simulator = Simulator::new(Path::new("kernels"), Path::new("target/shaders/sim"))?;
//! let input = SimBuffer::from_bytes(&[0; 4096])?;
//! let output = SimBuffer::zeroed(4096)?;
//! simulator.kernel("silu")?.launch(&Launch {
//!     grid: [4, 1, 1],
//!     threads: [256, 1, 1],
//!     bindings: &[Binding::whole(0, &input), Binding::whole(1, &output)],
//!     ..Launch::default()
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod compile;
mod device;
mod error;
mod executor;
mod launch;
mod library;
pub mod msl;
pub mod ptx;
pub mod rewrite;
mod simulator;
pub mod table;
mod toolchain;

pub use compile::compile;
pub use device::{CallLog, SimBackend, SimCompiler, SimDevice, SimMemory, SimPipeline};
pub use error::SimError;
pub use executor::buffer::SimBuffer;
pub use executor::schedule::Schedule;
pub use launch::{Binding, ConstantValue, Launch};
pub use simulator::{KernelHandle, Simulator};
pub use toolchain::Toolchain;
