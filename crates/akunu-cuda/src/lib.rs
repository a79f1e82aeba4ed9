#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod backend;
mod compiler;
mod context;
mod driver;
mod encoder;
mod gpus;
mod memory;
mod sources;
mod specialise;

/// The crate of the kernels that this device runs; `kernels::program` has `Device`, which it implements.
#[doc(no_inline)]
pub use akunu_kernels as kernels;
pub use backend::{Counters, Cuda, CudaRound, CudaSubmission};
pub use compiler::{CudaCompiler, CudaPipeline};
pub use encoder::CudaEncoder;
pub use gpus::{GpuInfo, gpus};
pub use memory::CudaBuffer;
pub use sources::PtxSources;
pub use specialise::SpecialiseError;

use akunu_kernels::gpu::GpuDevice;
use akunu_program::DeviceError;

/// Runs programs on an NVIDIA GPU.
pub type CudaDevice = GpuDevice<Cuda>;

/// Opens GPU `ordinal` of this machine, counted from 0, with the kernels that are embedded.
///
/// # Errors
/// [`DeviceError::Unavailable`] when there is no driver, no such GPU, or one that is too old, with the reason.
#[cfg(feature = "ptx")]
pub fn open(ordinal: u32) -> Result<CudaDevice, DeviceError> {
    open_with(ordinal, PtxSources::embedded())
}

/// Opens GPU `ordinal` of this machine, counted from 0, with these kernels.
///
/// # Errors
/// [`DeviceError::Unavailable`] when there is no driver, no such GPU, or one that is too old, with the reason.
pub fn open_with(ordinal: u32, sources: PtxSources) -> Result<CudaDevice, DeviceError> {
    let gpu = gpus::find(ordinal)?;
    let chip = gpu.chip();
    tracing::info!(name = gpu.name, driver = gpu.driver, "CUDA device");
    Ok(CudaDevice::over(Cuda::new(gpu, sources)?, chip))
}

/// There is no CUDA device, for this reason.
fn unavailable(why: impl Into<String>) -> DeviceError {
    DeviceError::Unavailable {
        device: "cuda",
        why: why.into(),
    }
}
