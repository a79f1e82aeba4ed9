//! The CPU device of tests that compare a few rows with many, or the last bits with another program.

use akunu_cpu::{CpuDevice, CpuOptions, Isa};
use akunu_kernels::Device;

/// The best level of this machine that multiplies many rows as it does a few: AMX multiplies more than eight by tiles of bf16.
pub fn exact_level() -> Isa {
    match Isa::detect() {
        Isa::Amx => Isa::Avx512,
        level => level,
    }
}

/// The device at that level; `None` for as many threads as it takes by itself.
pub fn exact_cpu(threads: Option<usize>) -> Box<dyn Device> {
    let options = CpuOptions {
        threads,
        isa: Some(exact_level()),
        ..CpuOptions::default()
    };
    Box::new(CpuDevice::new(options).expect("a CPU"))
}
