//! A device of twins that a test looks over the shoulder of.

use akunu_kernels::twin_device::TwinDevice;
use akunu_kernels::{KernelCall, KernelDevice};
use akunu_program::{
    Buffer, Checked, Device, DeviceError, PlanId, Program, Room, SharedBytes, Ticket,
};

/// What a test does beside what the device does.
pub trait Watch: Send {
    /// Kernels are loaded.
    fn loaded(&mut self, _: &[KernelCall]) {}

    /// Runs a program.
    fn submit(
        &mut self,
        device: &mut TwinDevice,
        plan: PlanId,
        step: Option<&Checked>,
    ) -> Result<Ticket, DeviceError> {
        device.submit(plan, step)
    }
}

/// The device and who looks.
pub struct Watched<W> {
    pub device: TwinDevice,
    pub watch: W,
}

impl<W: Watch> Watched<W> {
    pub fn new(watch: W) -> Watched<W> {
        Watched {
            device: TwinDevice::new(),
            watch,
        }
    }
}

impl<W: Watch> Device for Watched<W> {
    fn name(&self) -> &'static str {
        self.device.name()
    }

    fn description(&self) -> String {
        self.device.description()
    }

    fn allocate(&mut self, bytes: usize, label: &str) -> Result<Buffer, DeviceError> {
        self.device.allocate(bytes, label)
    }

    fn share(&mut self, bytes: SharedBytes, label: &str) -> Result<Buffer, DeviceError> {
        self.device.share(bytes, label)
    }

    fn release(&mut self, buffer: Buffer) {
        self.device.release(buffer);
    }

    fn write(&mut self, buffer: Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        self.device.write(buffer, offset, bytes)
    }

    fn read(&self, buffer: Buffer, offset: usize, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.device.read(buffer, offset, bytes)
    }

    fn load(&mut self, program: &Program) -> Result<PlanId, DeviceError> {
        self.device.load(program)
    }

    fn unload(&mut self, plan: PlanId) {
        self.device.unload(plan);
    }

    fn submit(&mut self, plan: PlanId, step: Option<&Checked>) -> Result<Ticket, DeviceError> {
        self.watch.submit(&mut self.device, plan, step)
    }
}

impl<W: Watch> KernelDevice for Watched<W> {
    fn load_kernels(&mut self, calls: Vec<KernelCall>, room: Room) -> Result<PlanId, DeviceError> {
        self.watch.loaded(&calls);
        self.device.load_kernels(calls, room)
    }
}
