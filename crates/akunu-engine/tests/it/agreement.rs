//! The comparison that a Mac's GPU is put to, with the CPU device.

use crate::support::agreement::{Open, assert_same_tokens};
use akunu_cpu::{CpuDevice, CpuOptions};
use akunu_kernels::twin_device::TwinDevice;

/// Breaks when the CPU computes something else than the twins, or the comparison refuses a right device.
#[test]
fn the_cpu_gives_the_tokens_of_the_twins() {
    let cpu: Open = || Box::new(CpuDevice::new(CpuOptions::default()).expect("options are fine"));
    if let Some(tie) = assert_same_tokens("cpu", [cpu, || Box::new(TwinDevice::new())]) {
        println!("{tie}");
    }
}
