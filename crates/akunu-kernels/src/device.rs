//! The interface of a device.

use std::ops::Range;
use std::sync::Arc;

use crate::bytes::AlignedBytes;
use crate::plan::{PlanError, Slice};
use crate::program::Program;
use crate::step::{Checked, RowError};

/// A buffer of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Buffer {
    /// Its place among the device's buffers.
    pub id: u32,
    /// How often the place was used before, so that the handle of a released buffer is not valid again.
    pub generation: u32,
    /// Size in bytes.
    pub len: usize,
    /// Whether kernels may write to it; mapped weights are read-only.
    pub writable: bool,
}

/// Memory that outlives the device's use of it and is never written: a mapped weight file.
pub trait SharedMemory: AsRef<[u8]> + Send + Sync {
    /// Says that these bytes will hardly be read again, because the device has made its own copy: their
    /// memory may be released, if they can be read again from elsewhere.
    fn forget(&self, range: Range<usize>) {
        let _ = range;
    }

    /// Bytes of the longest part that is ever bound, the largest tensor; `None` if it is not known.
    fn longest_part(&self) -> Option<usize> {
        None
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
    /// A program that the plan check refuses: a bug in the code that made it.
    #[error("the plan is wrong: {0}")]
    Plan(#[from] PlanError),
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

/// A program that a device has loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlanId {
    /// Its place among the loaded ones.
    pub index: u32,
    /// How often the place was used before: the id of a program that was unloaded stands for nothing.
    pub generation: u32,
}

/// An executor of programs.
///
/// A program is lowered and checked against this device's buffers when it is loaded; what is run with it is a
/// [`Checked`] step. After that a run can touch nothing but what the program names.
pub trait Device: Send {
    /// The name of the device.
    fn name(&self) -> &'static str;

    /// A description of the hardware, for people.
    fn description(&self) -> String;

    /// Bytes that further buffers may take together, as far as the device can tell.
    fn memory_limit(&self) -> Option<u64> {
        None
    }

    /// A zeroed buffer. `label` says in error messages and captures what it is for.
    fn allocate(&mut self, bytes: usize, label: &str) -> Result<Buffer, DeviceError>;

    /// A buffer that the host will fill and programs will only read, such as weights that have to be copied. A device
    /// may take other memory for it: all of it will be used, and read from front to back.
    fn allocate_filled(&mut self, bytes: usize, label: &str) -> Result<Buffer, DeviceError> {
        self.allocate(bytes, label)
    }

    /// A read-only buffer over memory that exists already; nothing is copied.
    fn share(&mut self, bytes: SharedBytes, label: &str) -> Result<Buffer, DeviceError>;

    /// A read-only buffer with a copy of these bytes.
    fn keep(&mut self, bytes: &[u8], label: &str) -> Result<Buffer, DeviceError> {
        self.share(Arc::new(AlignedBytes::copy_of(bytes)), label)
    }

    /// Bytes of the longest piece of [shared](Device::share) memory of `bytes` bytes that a kernel can be given, wherever it
    /// lies.
    fn longest_binding(&self, bytes: usize) -> usize {
        bytes
    }

    /// Gives a buffer's memory back. No program that names it may run afterwards.
    fn release(&mut self, buffer: Buffer);

    /// Copies host bytes into a buffer, after all that was submitted before.
    fn write(&mut self, buffer: Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Copies bytes of a buffer to the host.
    fn read(&self, buffer: Buffer, offset: usize, bytes: &mut [u8]) -> Result<(), DeviceError>;

    /// Copies bytes from one place to another, after all that was submitted before. The places do not overlap.
    fn copy(&mut self, from: Slice, to: Slice, bytes: usize) -> Result<(), DeviceError> {
        let mut copied = vec![0; bytes];
        self.read(from.buffer, from.offset, &mut copied)?;
        self.write(to.buffer, to.offset, &copied)
    }

    /// Turns a program into what the device runs: chooses kernels, makes pipelines, lays weights out, makes memory
    /// resident.
    fn load(&mut self, program: &Program) -> Result<PlanId, DeviceError>;

    /// Forgets a program.
    fn unload(&mut self, plan: PlanId);

    /// Whether [`Device::submit`] returns while the work still runs, so that it pays to submit before the result is
    /// wanted.
    fn runs_ahead(&self) -> bool {
        false
    }

    /// The number of rows up to which a step gives each row exactly the bits that it gives a single row.
    fn exact_rows(&self) -> usize {
        usize::MAX
    }

    /// Starts a program with the rows of a step, as often as the step says; it may return before the work has ended.
    /// Submissions run one after another. Until [`Device::wait`] has returned for it, the bytes that it writes may hold
    /// anything. Programs without rows take no step.
    fn submit(&mut self, plan: PlanId, step: Option<&Checked>) -> Result<Ticket, DeviceError>;

    /// Waits until a submission, and all before it, have ended.
    fn wait(&mut self, ticket: Ticket) -> Result<(), DeviceError> {
        let _ = ticket;
        Ok(())
    }

    /// Starts a program and waits for it.
    fn run(&mut self, plan: PlanId, step: Option<&Checked>) -> Result<(), DeviceError> {
        let ticket = self.submit(plan, step)?;
        self.wait(ticket)
    }
}
