//! The GPUs of a machine, and which of them can be used.

use std::ffi::{CStr, c_int};

use akunu_kernels::ChipConfig;
use akunu_kernels::chip::{GpuFamily, THREADGROUP_BYTES, Thresholds};
use akunu_program::DeviceError;
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};

use crate::driver::{self, Fault, call, version_words};
use crate::unavailable;

/// The least compute capability, times ten: the PTX is written for it.
const LEAST_CAPABILITY: u32 = 75;

/// A GPU as the driver describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuInfo {
    /// Its number, which is what `cuda:n` means.
    pub ordinal: u32,
    /// Its name: `NVIDIA H200`.
    pub name: String,
    /// Ten times its compute capability: 90 for 9.0.
    pub capability: u32,
    /// Bytes of its memory.
    pub memory: u64,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of shared memory of each of them.
    pub shared_memory: u32,
    /// Bytes of its second-level cache.
    pub cache: u64,
    /// Bytes that its memory delivers in a second, at best.
    pub bytes_per_second: u64,
    /// The newest CUDA that the driver knows: `13.0`.
    pub driver: String,
}

impl GpuInfo {
    /// What kernels are chosen and launched for.
    pub(crate) fn chip(&self) -> ChipConfig {
        let family = GpuFamily::Nvidia(self.capability);
        ChipConfig {
            name: self.name.clone(),
            family,
            thresholds: Thresholds::of(family),
            gpu_cores: self.multiprocessors,
            slc_bytes: self.cache,
            bytes_per_second: self.bytes_per_second,
            max_threads: 1024,
            threadgroup_bytes: THREADGROUP_BYTES,
            core_bytes: self.shared_memory,
        }
    }

    /// Refuses a GPU that cannot run the PTX.
    ///
    /// # Errors
    /// [`DeviceError::Unavailable`], with both compute capabilities.
    pub fn judge(&self) -> Result<(), DeviceError> {
        if self.capability >= LEAST_CAPABILITY {
            return Ok(());
        }
        let words = |capability: u32| format!("{}.{}", capability / 10, capability % 10);
        Err(unavailable(format!(
            "the {} has compute capability {}, and {} is needed, which GPUs since 2018 have",
            self.name,
            words(self.capability),
            words(LEAST_CAPABILITY)
        )))
    }
}

/// All NVIDIA GPUs of this machine.
///
/// # Errors
/// [`DeviceError::Unavailable`] when there is no driver that can be used, with the reason.
pub fn gpus() -> Result<Vec<GpuInfo>, DeviceError> {
    let version = driver::start()?;
    let mut count = 0;
    // SAFETY: the driver has started, and writes the number.
    let counted = unsafe { call!(cuDeviceGetCount(&raw mut count)) };
    let described = counted.and_then(|()| {
        let ordinals = 0..u32::try_from(count).unwrap_or(0);
        ordinals.map(|ordinal| describe(ordinal, version)).collect()
    });
    described.map_err(|fault| unavailable(fault.to_string()))
}

/// The GPU of this number, if it can be used.
pub(crate) fn find(ordinal: u32) -> Result<GpuInfo, DeviceError> {
    choose(gpus()?, ordinal)
}

fn choose(gpus: Vec<GpuInfo>, ordinal: u32) -> Result<GpuInfo, DeviceError> {
    let n_gpus = gpus.len();
    let gpu = gpus.into_iter().nth(ordinal as usize).ok_or_else(|| {
        unavailable(match n_gpus {
            0 => "the driver finds no NVIDIA GPU".to_owned(),
            1 => format!("GPU {ordinal} was asked for, and GPU 0 is the only one"),
            n => format!("GPU {ordinal} was asked for, and there are 0 to {}", n - 1),
        })
    })?;
    gpu.judge()?;
    Ok(gpu)
}

fn describe(ordinal: u32, version: c_int) -> Result<GpuInfo, Fault> {
    let mut device = 0;
    let mut name = [0; 128];
    let mut memory = 0;
    // SAFETY: every pointer is to a live variable of the type that the function writes; the name's last byte stays zero.
    let name = unsafe {
        call!(cuDeviceGet(&raw mut device, ordinal as c_int))?;
        call!(cuDeviceGetName(
            name.as_mut_ptr(),
            name.len() as c_int - 1,
            device
        ))?;
        call!(cuDeviceTotalMem_v2(&raw mut memory, device))?;
        CStr::from_ptr(name.as_ptr())
    };
    let number = |which| attribute(device, which);
    let major = number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    // Data moves at both edges of the clock.
    let kilohertz = number(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?;
    let bits = number(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?;
    Ok(GpuInfo {
        ordinal,
        name: name.to_string_lossy().into_owned(),
        capability: 10 * major + minor,
        memory: memory as u64,
        multiprocessors: number(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        shared_memory: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
        cache: number(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into(),
        bytes_per_second: 2 * 1000 * u64::from(kilohertz) * u64::from(bits / 8),
        driver: version_words(version),
    })
}

fn attribute(device: sys::CUdevice, which: Attribute) -> Result<u32, Fault> {
    let mut value = 0;
    // SAFETY: the driver writes the value.
    unsafe { call!(cuDeviceGetAttribute(&raw mut value, which, device)) }?;
    Ok(u32::try_from(value).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(ordinal: u32, capability: u32) -> GpuInfo {
        GpuInfo {
            ordinal,
            name: "NVIDIA Test".into(),
            capability,
            memory: 1 << 30,
            multiprocessors: 4,
            shared_memory: 65_536,
            cache: 1 << 20,
            bytes_per_second: 100_000_000_000,
            driver: "12.0".into(),
        }
    }

    /// Breaks when a number that is not there, or a GPU that cannot run the PTX, is taken or not explained.
    #[test]
    fn a_gpu_that_is_missing_or_too_old_is_refused_in_a_sentence() {
        assert_eq!(choose(vec![gpu(0, 75)], 0).unwrap().ordinal, 0);
        let words = |gpus: Vec<GpuInfo>, ordinal| choose(gpus, ordinal).unwrap_err().to_string();
        assert!(words(vec![], 0).contains("finds no NVIDIA GPU"));
        assert!(
            words(vec![gpu(0, 90)], 1).contains("GPU 1 was asked for, and GPU 0 is the only one")
        );
        assert!(words(vec![gpu(0, 90), gpu(1, 90)], 2).contains("there are 0 to 1"));
        assert!(
            words(vec![gpu(0, 61)], 0)
                .contains("the NVIDIA Test has compute capability 6.1, and 7.5 is needed")
        );
    }

    /// This machine builds and tests without a GPU; where there is one, it has a name and memory.
    #[test]
    fn the_gpus_of_this_machine_are_described_or_missing_in_a_sentence() {
        match gpus() {
            Ok(gpus) => assert!(
                gpus.iter()
                    .all(|gpu| !gpu.name.is_empty() && gpu.memory > 0)
            ),
            Err(error) => {
                let words = error.to_string();
                assert!(words.starts_with("there is no cuda device: "), "{words}");
                assert!(
                    words.ends_with("; the CPU device runs everywhere"),
                    "{words}"
                );
            }
        }
    }
}
