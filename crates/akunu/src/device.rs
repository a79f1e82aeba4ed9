//! What computes.

use akunu_cpu::{CpuDevice, CpuOptions};
use akunu_kernels::twin_device::TwinDevice;

use crate::error::Error;

/// What computes.
#[derive(Default)]
#[non_exhaustive]
pub enum Device {
    /// The best of this machine: Metal where there is one, else the CPU.
    #[default]
    Auto,
    /// The cores of this machine.
    Cpu(CpuOptions),
    /// The GPU of a Mac.
    Metal,
    /// The reference: plain Rust, one thread, slow and right by definition.
    Twin,
    /// Any other implementation.
    Custom(Box<dyn akunu_kernels::Device>),
}

impl Device {
    /// Makes it ready for one model.
    pub fn open(self) -> Result<Box<dyn akunu_kernels::Device>, Error> {
        match self {
            Device::Auto => metal().or_else(|_| cpu(CpuOptions::default())),
            Device::Cpu(options) => cpu(options),
            Device::Metal => metal(),
            Device::Twin => Ok(Box::new(TwinDevice::new())),
            Device::Custom(device) => Ok(device),
        }
    }
}

fn cpu(options: CpuOptions) -> Result<Box<dyn akunu_kernels::Device>, Error> {
    Ok(Box::new(CpuDevice::new(options)?))
}

#[cfg(target_os = "macos")]
fn metal() -> Result<Box<dyn akunu_kernels::Device>, Error> {
    let device = akunu_kernels::MetalDevice::new();
    Ok(Box::new(device.map_err(akunu_engine::EngineError::from)?))
}

#[cfg(not(target_os = "macos"))]
fn metal() -> Result<Box<dyn akunu_kernels::Device>, Error> {
    Err(Error::NoMetal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_has_a_device() {
        for device in [
            Device::Auto,
            Device::Cpu(CpuOptions::default()),
            Device::Twin,
        ] {
            device.open().map(|device| device.name()).expect("a device");
        }
        let twin = Device::Twin.open().expect("a device");
        let custom = Device::Custom(twin).open().expect("the same");
        assert_eq!(custom.name(), "twin");
    }

    #[cfg(not(target_os = "macos"))]
    #[test]
    fn metal_is_not_replaced_by_something_else() {
        assert!(matches!(Device::Metal.open(), Err(Error::NoMetal)));
    }
}
