//! Metal: the GPU of a Mac.
//!
//! This folder holds all of Apple's interface and all of its `unsafe`. It decides nothing: bindings,
//! barriers, chunks and lifetimes come from [`crate::gpu`], which is tested on every machine. What is
//! left are the calls.
//!
//! | file | what |
//! |---|---|
//! | `backend.rs` | submissions, waiting |
//! | `buffer.rs` | memory that host and GPU share |
//! | `encoder.rs` | the calls of an encoder |
//! | `compiler.rs` | a key to a pipeline |
//! | `library.rs` | the embedded library, or the embedded sources, compiled |
//! | `archive.rs` | pipelines kept from one run to the next |
//! | `reflection.rs` | the kernel table against what Metal sees, in debug builds |
//! | `residency.rs` | memory that stays wired, from macOS 15 on |
//! | `system.rs` | the default GPU, its chip, its cores |
#![allow(
    unsafe_code,
    reason = "Apple's interface is foreign code; each block says why it is right"
)]

mod archive;
mod backend;
mod buffer;
mod compiler;
mod encoder;
mod library;
mod reflection;
mod residency;
mod said;
mod system;

pub use backend::{Metal, MetalSubmission};
pub use buffer::MetalBuffer;
pub use compiler::{MetalCompiler, MetalPipeline};
pub use encoder::MetalEncoder;

use akunu_program::DeviceError;
use objc2::rc::autoreleasepool;

use crate::gpu::GpuDevice;

/// Runs plans on the GPU of a Mac.
pub type MetalDevice = GpuDevice<Metal>;

/// How dispatches of one submission are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// At the same time, but for the plan's barriers.
    #[default]
    Concurrent,
    /// One after another: slower, and right even if a barrier is missing. For finding such a fault.
    Serial,
}

impl MetalDevice {
    /// The system's default GPU.
    ///
    /// # Errors
    /// [`DeviceError::Unavailable`] when there is none that can run the kernels, with the reason.
    pub fn new() -> Result<MetalDevice, DeviceError> {
        MetalDevice::with_order(Order::default())
    }

    /// The system's default GPU with this order of dispatches.
    ///
    /// # Errors
    /// As [`MetalDevice::new`].
    pub fn with_order(order: Order) -> Result<MetalDevice, DeviceError> {
        autoreleasepool(|_| {
            let gpu = system::default_gpu()?;
            let chip = system::chip(&gpu);
            tracing::info!(
                name = chip.name,
                cores = chip.gpu_cores,
                family = ?chip.family,
                "Metal device"
            );
            let backend = Metal::new(gpu, order)?;
            Ok(MetalDevice::over(backend, chip))
        })
    }
}

/// `cargo xtask check-macos` plants this once, and must then see the check fail.
#[cfg(akunu_planted_type_error)]
const PLANTED: u32 = "planted";
