//! The CPU device of tests that compare a few rows with many, or the last bits with another program.

use akunu_cpu::{CpuDevice, CpuOptions};
use akunu_program::Device;

/// The device that multiplies many rows as it does a few; `None` for as many threads as it takes by itself.
pub fn exact_cpu(threads: Option<usize>) -> Box<dyn Device> {
    let options = CpuOptions {
        threads,
        exact: true,
        ..CpuOptions::default()
    };
    Box::new(CpuDevice::new(options).expect("a CPU"))
}
