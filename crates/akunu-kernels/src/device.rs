//! What an executor of plans offers.

use std::ops::Range;
use std::sync::Arc;

use crate::bytes::AlignedBytes;
use crate::chip::ChipConfig;
use crate::pipeline::{PipelineId, PipelineKey};
use crate::plan::Plan;

/// A buffer of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Buffer {
    /// Which one, counted from 0 in the order of creation.
    pub id: u32,
    /// Size in bytes.
    pub len: usize,
    /// Whether kernels may write to it; mapped weights they may not.
    pub writable: bool,
}

/// Memory that outlives the device's use of it and is never written: a mapped weight file.
pub trait SharedMemory: AsRef<[u8]> + Send + Sync {
    /// Says that these bytes will hardly be read again, because the device has made its own copy: the
    /// memory behind them may be given back, if they can be had again from elsewhere.
    fn forget(&self, range: Range<usize>) {
        let _ = range;
    }
}

impl SharedMemory for Vec<u8> {}
impl SharedMemory for AlignedBytes {}

/// Shared memory, held as long as a device uses it.
pub type SharedBytes = Arc<dyn SharedMemory>;

/// A submission of one device: later ones are larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// Why a device refused or failed.
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
    /// A position beyond the one that the plan was checked for.
    #[error("position {position} is beyond {max}, the last one this plan was checked for")]
    Position {
        /// The position asked for.
        position: u64,
        /// The last one allowed.
        max: u32,
    },
    /// A buffer or pipeline of another device.
    #[error("{what} {id} is not of this device")]
    Foreign {
        /// `buffer` or `pipeline`.
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
    /// More memory than the device should use.
    #[error(
        "{label} needs {} MiB, {} MiB are in use and the device should use at most {} MiB: take a \
         smaller model or context, or `--device cpu`",
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
    #[error("there is no {device} device: {why}; `--device cpu` runs everywhere")]
    Unavailable {
        /// The name that `--device` takes.
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

/// An executor of plans.
///
/// A plan is checked against this device's buffers when it is built ([`Plan::check`]); after that a
/// run can touch nothing but what the plan names.
pub trait Device: Send {
    /// The name that `--device` takes.
    fn name(&self) -> &'static str;

    /// The chip that plans for this device are laid out for.
    fn chip(&self) -> &ChipConfig;

    /// Bytes that further buffers may take together, as far as the device can tell.
    fn memory_limit(&self) -> Option<u64> {
        None
    }

    /// A zeroed buffer. `label` says in error messages and captures what it is for.
    fn allocate(&mut self, bytes: usize, label: &str) -> Result<Buffer, DeviceError>;

    /// A read-only buffer over memory that exists already; nothing is copied.
    fn share(&mut self, bytes: SharedBytes, label: &str) -> Result<Buffer, DeviceError>;

    /// Gives a buffer's memory back. No plan that names it may run afterwards.
    fn release(&mut self, buffer: Buffer);

    /// Copies host bytes into a buffer.
    fn write(&mut self, buffer: Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Copies bytes of a buffer to the host.
    fn read(&self, buffer: Buffer, offset: usize, bytes: &mut [u8]) -> Result<(), DeviceError>;

    /// The pipeline of this key, made at the first request.
    fn pipeline(&mut self, key: &PipelineKey) -> Result<PipelineId, DeviceError>;

    /// Most threads of a threadgroup that a pipeline can be launched with.
    fn thread_limit(&mut self, pipeline: PipelineId) -> Result<u32, DeviceError> {
        let _ = pipeline;
        Ok(self.chip().max_threads)
    }

    /// What a device can do once for a plan before it runs: lay weights out as its kernels read them,
    /// make memory resident. A plan runs without it as well, but perhaps more slowly.
    fn prepare(&mut self, plan: &Plan) -> Result<(), DeviceError> {
        let _ = plan;
        Ok(())
    }

    /// Runs a plan once, patched to `position`, and waits.
    fn run(&mut self, plan: &Plan, position: u32) -> Result<(), DeviceError> {
        self.run_chain(plan, position, 1)
    }

    /// Runs a plan `n` times in one submission, patched to `first`, `first + 1`, …, and waits.
    fn run_chain(&mut self, plan: &Plan, first: u32, n: u32) -> Result<(), DeviceError>;

    /// Whether [`Device::submit_chain`] returns while the chain still runs, so that it pays to submit
    /// before the result is wanted.
    fn runs_ahead(&self) -> bool {
        false
    }

    /// Starts a chain and may return before it has ended. Submissions run one after another. Until
    /// [`Device::wait`] has returned for it, the bytes that the chain writes may hold anything.
    fn submit_chain(&mut self, plan: &Plan, first: u32, n: u32) -> Result<Ticket, DeviceError> {
        self.run_chain(plan, first, n)?;
        Ok(Ticket::default())
    }

    /// Waits until a submission, and all before it, have ended.
    fn wait(&mut self, ticket: Ticket) -> Result<(), DeviceError> {
        let _ = ticket;
        Ok(())
    }
}
