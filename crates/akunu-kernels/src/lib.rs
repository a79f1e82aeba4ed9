#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

pub mod case;
pub mod chip;
pub mod constant;
pub mod cost;
pub mod extent;
pub mod flatten;
pub mod gpu;
mod hazard;
pub mod kernel;
mod kernel_device;
pub mod lower;
#[cfg(target_os = "macos")]
pub mod metal;
pub mod pipeline;
pub mod plan;
pub mod sources;
pub mod table;
pub mod twin;
pub mod twin_device;
pub mod weight;

/// The crate of `Program` and `Device`.
#[doc(no_inline)]
pub use akunu_program as program;
pub use chip::ChipConfig;
pub use constant::{Constant, ConstantType, ConstantValue, Constants};
pub use cost::Cost;
pub use kernel_device::KernelDevice;
#[cfg(target_os = "macos")]
pub use metal::MetalDevice;
pub use pipeline::{PipelineId, PipelineKey};
pub use plan::{Dispatch, KernelCall, Plan, PlanError};
pub use table::{KernelId, KernelRow};
