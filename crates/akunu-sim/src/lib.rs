#![doc = include_str!("../README.md")]

mod compile;
pub mod count;
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

/// The crate of the kernels that the simulator runs.
#[doc(no_inline)]
pub use akunu_kernels as kernels;
pub use akunu_kernels::ConstantValue;
pub use compile::{Purpose, compile};
pub use device::{CallLog, SimBackend, SimCompiler, SimDevice, SimMemory, SimPipeline};
pub use error::SimError;
pub use executor::buffer::SimBuffer;
pub use executor::schedule::Schedule;
pub use launch::{Binding, Launch};
pub use simulator::{KernelHandle, Simulator};
pub use toolchain::Toolchain;
