//! CPU devices with one thread: tests run beside each other, where threads that wait for each other take the time of those
//! that compute. The results are the same bits for every number of threads, as the tests of `akunu-cpu` and of parity show.

use akunu_cpu::{CpuDevice, CpuOptions};
use akunu_program::Device;

/// The device as people use it.
pub fn cpu() -> Box<dyn Device> {
    with_threads(1, false)
}

/// The device that multiplies many rows as it does a few, for tests that compare these, or the last bits with another
/// program.
pub fn exact_cpu() -> Box<dyn Device> {
    with_threads(1, true)
}

/// The same with two threads.
pub fn exact_cpu_of_two_threads() -> Box<dyn Device> {
    with_threads(2, true)
}

fn with_threads(threads: usize, exact: bool) -> Box<dyn Device> {
    let options = CpuOptions {
        threads: Some(threads),
        exact,
        ..CpuOptions::default()
    };
    Box::new(CpuDevice::new(options).expect("a CPU"))
}
