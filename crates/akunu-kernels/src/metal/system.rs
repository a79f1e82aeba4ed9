//! The default GPU, and what the system says about it.

use std::ffi::{c_char, c_void};
use std::ptr::NonNull;

use akunu_program::DeviceError;
use objc2::available;
use objc2::rc::Retained;
use objc2::runtime::{AnyObject, ProtocolObject};
use objc2_foundation::{NSNumber, NSString};
use objc2_metal::{MTLCreateSystemDefaultDevice, MTLDevice, MTLGPUFamily};

use crate::chip::{ChipConfig, GpuFamily, Thresholds};

/// A GPU, shared by everything that belongs to it.
pub(super) type Gpu = Retained<ProtocolObject<dyn MTLDevice>>;

// Metal finds no default device in a program that is not linked with this framework.
#[link(name = "CoreGraphics", kind = "framework")]
unsafe extern "C" {}

/// The system's default GPU, when it can run the kernels: MSL 3.1, and matrices in SIMD groups.
pub(super) fn default_gpu() -> Result<Gpu, DeviceError> {
    let unavailable = |why: String| DeviceError::Unavailable {
        device: "metal",
        why,
    };
    if !available!(macos = 14.0) {
        return Err(unavailable("macOS 14 or later is needed".into()));
    }
    let gpu = MTLCreateSystemDefaultDevice().ok_or_else(|| {
        unavailable(
            "the system lists no GPU, as in some virtual machines and remote sessions".into(),
        )
    })?;
    if !gpu.supportsFamily(MTLGPUFamily::Apple7) {
        let name = gpu.name();
        return Err(unavailable(format!("{name} is not an M1 or later")));
    }
    Ok(gpu)
}

/// The chip: what our table knows of it by name, corrected by what the system says.
pub(super) fn chip(gpu: &Gpu) -> ChipConfig {
    let known = ChipConfig::by_name_or_m1(&gpu.name().to_string());
    let families = [
        (MTLGPUFamily::Apple10, 10),
        (MTLGPUFamily::Apple9, 9),
        (MTLGPUFamily::Apple8, 8),
    ];
    let family = families
        .iter()
        .find(|(family, _)| gpu.supportsFamily(*family));
    let max_threads = gpu.maxThreadsPerThreadgroup().width.min(1024) as u32;
    let threadgroup_bytes = u32::try_from(gpu.maxThreadgroupMemoryLength());
    let family = GpuFamily::Apple(family.map_or(7, |(_, number)| *number));
    ChipConfig {
        family,
        thresholds: Thresholds::of(family),
        gpu_cores: gpu_cores().unwrap_or(known.gpu_cores),
        max_threads,
        threadgroup_bytes: threadgroup_bytes.unwrap_or(known.threadgroup_bytes),
        ..known
    }
}

#[link(name = "IOKit", kind = "framework")]
unsafe extern "C" {
    /// A new dictionary that describes services of this class.
    fn IOServiceMatching(name: *const c_char) -> *mut c_void;
    /// The first service that fits; takes the dictionary over. 0 when there is none.
    fn IOServiceGetMatchingService(main_port: u32, matching: *mut c_void) -> u32;
    /// A new object with the value of a property, or null.
    fn IORegistryEntryCreateCFProperty(
        entry: u32,
        key: *const NSString,
        allocator: *const c_void,
        options: u32,
    ) -> *mut AnyObject;
    fn IOObjectRelease(object: u32) -> i32;
}

/// The number of GPU cores of this very machine, which Metal does not tell.
fn gpu_cores() -> Option<u32> {
    let key = NSString::from_str("gpu-core-count");
    // SAFETY: the name is a C string. The dictionary is taken over by the second call, which accepts
    // null too. `NSString` and `CFString` are the same thing to the system. The service is released
    // once, and only when there is one.
    let value = unsafe {
        let matching = IOServiceMatching(c"AGXAccelerator".as_ptr());
        let service = NonNull::new(matching).map_or(0, |matching| {
            IOServiceGetMatchingService(0, matching.as_ptr())
        });
        if service == 0 {
            return None;
        }
        let value = IORegistryEntryCreateCFProperty(service, &*key, std::ptr::null(), 0);
        IOObjectRelease(service);
        // A function with `Create` in its name gives an object that we own.
        Retained::from_raw(value)?
    };
    let cores = value.downcast_ref::<NSNumber>()?.as_u32();
    (cores > 0).then_some(cores)
}
