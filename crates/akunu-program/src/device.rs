//! The interface of a device.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::buffer::{Buffer, SharedBytes, Slice};
use crate::bytes::AlignedBytes;
use crate::error::DeviceError;
use crate::program::Program;
use crate::step::Checked;

/// A submission of one device: later ones are larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

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
///
/// ```no_run
/// use akunu_program::{Device, DeviceError};
/// # fn example(device: &mut dyn Device) -> Result<(), DeviceError> {
/// let buffer = device.allocate(4, "four bytes")?;
/// device.write(buffer, 0, &[1, 2, 3, 4])?;
/// device.release(buffer);
/// # Ok(())
/// # }
/// ```
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

    /// Submissions from now on end early, with [`DeviceError::Stopped`], once `stop` is true; `None`: they run to their end. What
    /// a stopped submission was to write may hold anything. A device that never computes for long may ignore this.
    fn stop_when(&mut self, stop: Option<Arc<AtomicBool>>) {
        let _ = stop;
    }

    /// Waits until a submission, and all before it, have ended.
    fn wait(&mut self, ticket: Ticket) -> Result<(), DeviceError> {
        let _ = ticket;
        Ok(())
    }

    /// Writes the rows and pages of a step to where the device reads them; [`Device::submit`] begins with it.
    fn upload(&mut self, step: &Checked) -> Result<(), DeviceError> {
        for (to, bytes) in step.uploads() {
            self.write(to.buffer, to.offset, bytes)?;
        }
        Ok(())
    }

    /// Starts a program and waits for it.
    fn run(&mut self, plan: PlanId, step: Option<&Checked>) -> Result<(), DeviceError> {
        let ticket = self.submit(plan, step)?;
        self.wait(ticket)
    }
}
