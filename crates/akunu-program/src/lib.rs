#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod buffer;
mod bytes;
mod device;
mod error;
mod host_buffers;
pub mod host_memory;
mod log_scale;
mod matrix;
mod mlx;
mod op;
mod plans;
mod program;
mod step;

pub use buffer::{Buffer, SharedBytes, SharedMemory, Slice};
pub use bytes::AlignedBytes;
pub use device::{Device, PlanId, Ticket};
pub use error::DeviceError;
pub use host_buffers::{HostBuffers, HostMemory};
pub use log_scale::LogScale;
pub use matrix::{Matrix, VECTOR, row_bytes, whole_blocks};
pub use mlx::{MlxLayout, ScaleType};
pub use op::{
    ChoiceMemory, Choose, DistanceBias, GateFunction, HeadNorms, Heads, LayerCache, LearnedBy,
    Masks, Op, Pairing, Rope, RowKeys, Rows, ScoreMemory, TranscriptTokens, Windows,
};
pub use plans::Plans;
pub use program::Program;
pub use step::{
    Checked, Count, Counts, PageMap, Room, RowError, RowTable, SequenceSlots, StepMemory,
};
