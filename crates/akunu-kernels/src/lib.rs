#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

pub mod bytes;
pub mod case;
pub mod chip;
pub mod constant;
pub mod cost;
pub mod device;
pub mod extent;
pub mod flatten;
pub mod gpu;
mod hazard;
pub mod host_buffers;
pub mod host_memory;
pub mod kernel;
pub mod log_scale;
pub mod lower;
#[cfg(target_os = "macos")]
pub mod metal;
pub mod pipeline;
pub mod plan;
pub mod plans;
pub mod program;
pub mod sources;
pub mod step;
pub mod table;
pub mod twin;
pub mod twin_device;
pub mod weight;

pub use chip::ChipConfig;
pub use constant::{Constant, ConstantType, ConstantValue, Constants};
pub use cost::Cost;
pub use device::{Buffer, Device, DeviceError, PlanId, Ticket};
#[cfg(target_os = "macos")]
pub use metal::MetalDevice;
pub use pipeline::{PipelineId, PipelineKey};
pub use plan::{Dispatch, KernelCall, Plan, PlanError};
pub use program::{Op, Program};
pub use step::{Checked, Counts, PageMap, RowError, RowTable, StepMemory};
pub use table::{KernelId, KernelRow};
