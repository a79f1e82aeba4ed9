//! Short ways to fill buffers and launch fixture kernels.
#![allow(dead_code, reason = "each test file uses a part of it")]

use akunu_sim::{Binding, ConstantValue, Launch, Schedule, SimBuffer, SimError, Simulator};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The fixture kernels.
pub fn kernels() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels")
}

/// Where this workspace keeps compiled fixtures.
pub fn cache() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/shaders/sim-fixtures")
}

/// One simulator for all tests of a file.
pub static SIMULATOR: LazyLock<Simulator> = LazyLock::new(|| {
    Simulator::new(&kernels(), &cache()).expect("clang and the fixtures are there")
});

/// A buffer of these values.
pub fn buffer<T: bytemuck::NoUninit>(values: &[T]) -> SimBuffer {
    SimBuffer::from_bytes(bytemuck::cast_slice(values)).expect("memory for a buffer")
}

/// The buffer's contents as values.
pub fn values<T: bytemuck::AnyBitPattern>(buffer: &SimBuffer) -> Vec<T> {
    buffer
        .bytes()
        .chunks_exact(size_of::<T>())
        .map(bytemuck::pod_read_unaligned)
        .collect()
}

/// A launch with the buffers bound to 0, 1, 2, …
pub struct Case<'a> {
    pub kernel: &'a str,
    pub grid: u32,
    pub threads: u32,
    pub buffers: &'a [&'a SimBuffer],
    pub threadgroup_bytes: &'a [(u32, usize)],
    pub constants: &'a [(u32, ConstantValue)],
    pub schedule: Schedule,
}

impl Default for Case<'_> {
    fn default() -> Self {
        Case {
            kernel: "",
            grid: 1,
            threads: 32,
            buffers: &[],
            threadgroup_bytes: &[],
            constants: &[],
            schedule: Schedule::Ascending,
        }
    }
}

impl Case<'_> {
    pub fn run(&self) -> Result<(), SimError> {
        let bindings: Vec<_> = (0u32..)
            .zip(self.buffers)
            .map(|(index, buffer)| Binding::whole(index, buffer))
            .collect();
        SIMULATOR.kernel(self.kernel)?.launch(&Launch {
            grid: [self.grid, 1, 1],
            threads: [self.threads, 1, 1],
            bindings: &bindings,
            threadgroup_bytes: self.threadgroup_bytes,
            constants: self.constants,
            schedule: self.schedule,
            host_threads: None,
        })
    }

    /// The message of the error that the launch must end with.
    pub fn fails(&self) -> String {
        self.run()
            .expect_err("the planted fault must be found")
            .to_string()
    }
}
