//! The devices that can run a model.

use akunu_cpu::{CpuDevice, CpuOptions};
use akunu_kernels::twin_device::TwinDevice;
use akunu_program::Device as CustomDevice;

use crate::error::Error;

/// A device that can run a model.
///
/// ```no_run
/// use akunu::{CpuOptions, Device, Model};
///
/// let gpu = Model::open_on("model.gguf", Device::Cuda(0));
/// let cpu = Device::Cpu(CpuOptions { threads: Some(4), ..CpuOptions::default() });
/// let model = gpu.or_else(|_| Model::open_on("model.gguf", cpu))?;
/// println!("{}", model.device().0); // "cuda" or "cpu"
/// # Ok::<(), akunu::Error>(())
/// ```
#[derive(Default)]
#[non_exhaustive]
pub enum Device {
    /// The best device of this machine: an NVIDIA GPU (with the feature `cuda`) or a Mac's GPU if there is one, else the CPU.
    #[default]
    Auto,
    /// The cores of this machine.
    Cpu(CpuOptions),
    /// The GPU of a Mac.
    Metal,
    /// An NVIDIA GPU, by its number from 0; only with the feature `cuda`.
    Cuda(u32),
    /// The specification that the others are tested against: plain Rust, one thread, slow.
    Twin,
    /// Any other implementation.
    Custom(Box<dyn CustomDevice>),
}

impl Device {
    /// The device with this name: `auto`, `cpu`, `metal`, `cuda`, `cuda:1` for the second GPU, or `twin`. `options`
    /// apply if it is the CPU.
    pub fn named(name: &str, options: CpuOptions) -> Result<Device, Error> {
        let gpu = name.strip_prefix("cuda:").map(str::parse);
        Ok(match (name, gpu) {
            ("auto", _) => Device::Custom(cuda(0).or_else(|_| metal()).or_else(|_| cpu(options))?),
            ("cpu", _) => Device::Cpu(options),
            ("metal", _) => Device::Metal,
            ("cuda", _) => Device::Cuda(0),
            ("twin", _) => Device::Twin,
            (_, Some(Ok(ordinal))) => Device::Cuda(ordinal),
            _ => return Err(Error::UnknownDevice(name.to_string())),
        })
    }

    /// Opens the device, for one model.
    pub fn open(self) -> Result<Box<dyn CustomDevice>, Error> {
        match self {
            Device::Auto => cuda(0)
                .or_else(|_| metal())
                .or_else(|_| cpu(CpuOptions::default())),
            Device::Cpu(options) => cpu(options),
            Device::Metal => metal(),
            Device::Cuda(ordinal) => cuda(ordinal),
            Device::Twin => Ok(Box::new(TwinDevice::new())),
            Device::Custom(device) => Ok(device),
        }
    }
}

fn cpu(options: CpuOptions) -> Result<Box<dyn CustomDevice>, Error> {
    Ok(Box::new(CpuDevice::new(options)?))
}

#[cfg(target_os = "macos")]
fn metal() -> Result<Box<dyn CustomDevice>, Error> {
    let device = akunu_kernels::MetalDevice::new();
    Ok(Box::new(device.map_err(akunu_engine::EngineError::from)?))
}

#[cfg(not(target_os = "macos"))]
fn metal() -> Result<Box<dyn CustomDevice>, Error> {
    Err(Error::NoMetal)
}

#[cfg(feature = "cuda")]
fn cuda(ordinal: u32) -> Result<Box<dyn CustomDevice>, Error> {
    let device = akunu_cuda::open(ordinal);
    Ok(Box::new(device.map_err(akunu_engine::EngineError::from)?))
}

#[cfg(not(feature = "cuda"))]
fn cuda(_: u32) -> Result<Box<dyn CustomDevice>, Error> {
    Err(Error::NoCuda)
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

    /// Breaks when a name is taken for another device, or a wrong one for any.
    #[test]
    fn devices_have_names() {
        let named = |name: &str| Device::named(name, CpuOptions::default());
        assert!(matches!(named("cpu"), Ok(Device::Cpu(_))));
        assert!(matches!(named("cuda"), Ok(Device::Cuda(0))));
        assert!(matches!(named("cuda:3"), Ok(Device::Cuda(3))));
        assert!(matches!(named("auto"), Ok(Device::Custom(_))));
        for wrong in ["", "CPU", "cuda:", "cuda:x", "toaster"] {
            let Err(error) = named(wrong) else {
                panic!("{wrong} is no device");
            };
            assert!(error.to_string().contains(&format!("`{wrong}`")), "{error}");
        }
    }

    #[cfg(not(target_os = "macos"))]
    #[test]
    fn metal_is_not_replaced_by_something_else() {
        assert!(matches!(Device::Metal.open(), Err(Error::NoMetal)));
    }
    /// A GPU that is not there, or not built in, is named: nothing else computes in its place.
    #[test]
    fn cuda_is_not_replaced_by_something_else() {
        let Err(error) = Device::Cuda(99).open() else {
            panic!("nobody has a hundred GPUs");
        };
        let words = error.to_string();
        assert!(words.contains("CUDA") || words.contains("cuda"), "{words}");
    }
}
