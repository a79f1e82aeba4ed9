//! Devices that run single kernels of the table.

use akunu_program::{Device, DeviceError, PlanId, Room};

use crate::plan::KernelCall;

/// A device that also runs kernels of the table as they are, without a program: for tests and measurements of kernels.
pub trait KernelDevice: Device {
    /// Loads kernels in order. `room` says what their params and steps are for; kernels that read no rows need
    /// `Room::default()`.
    fn load_kernels(&mut self, calls: Vec<KernelCall>, room: Room) -> Result<PlanId, DeviceError>;
}
