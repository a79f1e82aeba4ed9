//! Why a device refused or failed.

use crate::step::RowError;

/// Why a device refused or failed.
///
/// ```no_run
/// use akunu_program::{Device, DeviceError};
/// # fn example(device: &mut dyn Device) -> Result<(), DeviceError> {
/// let buffer = device.allocate(1 << 20, "scratch")?;
/// device.release(buffer);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// A host access beyond the end of a buffer.
    #[error("bytes {offset}..{end} are outside of buffer {buffer}, which has {len}")]
    OutOfRange {
        /// The buffer's number.
        buffer: u32,
        /// First byte.
        offset: usize,
        /// End of the access.
        end: usize,
        /// The buffer's size.
        len: usize,
    },
    /// A host write to memory that kernels and host only read.
    #[error("buffer {buffer} holds mapped weights and cannot be written")]
    ReadOnly {
        /// The buffer's number.
        buffer: u32,
    },
    /// A program that the device cannot run as it is: a bug in the code that made it. The error is the device's own.
    #[error("the plan is wrong: {0}")]
    Plan(Box<dyn std::error::Error + Send + Sync>),
    /// A step that was refused before anything ran.
    #[error(transparent)]
    Rows(#[from] RowError),
    /// A buffer or pipeline of another device.
    #[error("{what} {id} is not of this device")]
    Foreign {
        /// `buffer`, `pipeline` or `program`.
        what: &'static str,
        /// Its number.
        id: u32,
    },
    /// A pipeline could not be made.
    #[error("kernel {kernel} cannot be made: {why}")]
    Pipeline {
        /// The kernel's name.
        kernel: String,
        /// What the compiler said.
        why: String,
    },
    /// A dispatch failed.
    #[error("dispatch {index} ({kernel}) failed: {why}")]
    Dispatch {
        /// Its place in the plan.
        index: usize,
        /// The kernel's name.
        kernel: String,
        /// What went wrong.
        why: String,
    },
    /// A submission that was [told to stop](crate::Device::stop_when) before its end.
    #[error("the computation was stopped before its end")]
    Stopped,
    /// More memory than the device should use.
    #[error(
        "{label} needs {} MiB, {} MiB are in use and the device should use at most {} MiB: take a \
         smaller model or context, or the CPU device",
        bytes >> 20, used >> 20, budget >> 20
    )]
    Budget {
        /// What the memory was for.
        label: String,
        /// Bytes asked for.
        bytes: u64,
        /// Bytes of all buffers so far.
        used: u64,
        /// Bytes that all buffers may have.
        budget: u64,
    },
    /// A tensor that lies across the border of two buffers.
    #[error("a binding of {bytes} bytes does not fit a buffer: at most {max} are possible here")]
    Cut {
        /// Bytes of the binding.
        bytes: usize,
        /// Bytes that fit anywhere.
        max: usize,
    },
    /// The GPU failed; what its memory holds is unknown.
    #[error("the GPU failed and this device cannot be used any more: {why}")]
    Lost {
        /// What the system said.
        why: String,
    },
    /// There is no such device here.
    #[error("there is no {device} device: {why}; the CPU device runs everywhere")]
    Unavailable {
        /// The name of the device.
        device: &'static str,
        /// What is missing.
        why: String,
    },
    /// Not enough memory for a buffer.
    #[error("no memory for a buffer of {bytes} bytes ({label})")]
    Memory {
        /// Its size.
        bytes: usize,
        /// What it was for.
        label: String,
    },
}
