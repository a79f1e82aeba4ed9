#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod activation;
mod attention;
mod buffer;
mod bytes;
mod choice;
mod device;
mod error;
mod format;
mod host_buffers;
pub mod host_memory;
mod log_scale;
mod matrix;
mod mlx;
pub mod op;
mod plans;
mod position;
mod program;
mod step;

pub use activation::{ActivationFunction, GateFunction};
/// The crate of `DType` and of the structs that programs pass to kernels.
#[doc(no_inline)]
pub use akunu_types as types;
pub use attention::{DistanceBias, HeadNorms, Heads, LayerCache, RowKeys};
pub use buffer::{Buffer, SharedBytes, SharedMemory, Slice};
pub use bytes::AlignedBytes;
pub use choice::{ChoiceMemory, Choose, Masks, ScoreMemory, TranscriptTokens};
pub use device::{Device, PlanId, Ticket};
pub use error::DeviceError;
pub use format::{VECTOR, row_bytes, whole_blocks};
pub use host_buffers::{HostBuffers, HostMemory};
pub use log_scale::LogScale;
pub use matrix::{Matrix, Storage, Windows};
pub use mlx::{MlxLayout, ScaleType};
pub use op::{
    ConvForm, ExpertMatrix, GateOrder, Gating, HeadOrder, Op, Routing, StatePool, Weights,
};
pub use plans::Plans;
pub use position::{Axes, LearnedBy, Pairing, Rope};
pub use program::Program;
pub use step::{
    Checked, Count, Counts, PageMap, Room, RowError, RowTable, Rows, SequenceSlots, StepMemory,
};
