//! Programs of operations, kernels as data, and the devices that run them.
//!
//! * [`program`]: what a model does, as operations on rows; [`step`]: the rows, their pages, and the proof that a step
//!   stays within them; [`lower`]: from operations to kernels.
//! * [`table`]: every kernel has one row: its name, bindings, parameters, function constants, launch
//!   geometry, the bytes it needs of each binding, its *twin* (a scalar Rust function that is its
//!   specification) and the cases it is tested with.
//! * [`plan`]: a list of dispatches that was checked once against real buffer sizes, for a full step, and is then
//!   replayed for every token.
//! * [`cost`]: the bytes that a launch or a plan moves, and the operations that it computes.
//! * [`sources`]: the text of every kernel, embedded; [`flatten`] is how it was made.
//! * [`device`]: what an executor of programs offers. [`twin_device::TwinDevice`] runs the twins,
//!   [`gpu::GpuDevice`] is the device of every GPU.
//!
//! This crate knows nothing of model files or of models.
//!
//! Numbers: activations and logits are `f32`, the KV cache is `f16`, weights are in any usable
//! [`akunu_types::DType`], and every sum is accumulated in `f32`.
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
