//! Chips that are lowered for in ways of their own, beside [`ChipConfig::m1`].

use akunu_kernels::ChipConfig;
use akunu_kernels::chip::GpuFamily;
use akunu_kernels::lower::{GpuRules, NvidiaRules, Rules};

/// An NVIDIA GPU by ten times its compute capability, with the multiprocessors of an H200.
pub fn nvidia(capability: u32) -> ChipConfig {
    ChipConfig {
        family: GpuFamily::Nvidia(capability),
        gpu_cores: 132,
        core_bytes: 228 << 10,
        ..ChipConfig::m1()
    }
}

/// The rules of a chip's vendor.
pub fn rules(chip: &ChipConfig) -> Box<dyn Rules> {
    match chip.family {
        GpuFamily::Nvidia(_) => Box::new(NvidiaRules::new(chip)),
        _ => Box::new(GpuRules::new(chip)),
    }
}
