//! The GPU that a report is about.

use akunu_kernels::gpu::{Backend, Compiled, Compiler, GpuDevice, Limits};
use akunu_kernels::kernel::nvidia;
use akunu_kernels::lower::Rules;
use akunu_kernels::table::{Family, KernelRow};
use akunu_kernels::{ChipConfig, KernelDevice, KernelId, PipelineKey};
use akunu_repo::{Failure, workspace};
use akunu_sim::{Schedule, SimBackend, SimDevice, Simulator};

use crate::gpu;
use std::path::Path;

/// A device that can be asked for.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The GPU of this Mac
    Metal,
    /// An NVIDIA GPU
    Cuda,
    /// The simulator
    Sim,
}

impl Which {
    pub fn name(self) -> &'static str {
        match self {
            Which::Metal => "metal",
            Which::Cuda => "cuda",
            Which::Sim => "sim",
        }
    }

    /// The simulator takes seconds for what a GPU does in microseconds.
    pub fn is_small(self) -> bool {
        self == Which::Sim
    }

    /// Whether its kernels can run with the system's validation.
    pub fn has_validation(self) -> bool {
        self == Which::Metal
    }

    /// Whether it has the kernels of a family.
    pub fn has(self, family: Family) -> bool {
        self == Which::Cuda || family.is_metal()
    }
}

/// A GPU with what a report asks of it.
pub trait Target: KernelDevice {
    fn chip(&self) -> &ChipConfig;
    fn limits(&self) -> Limits;
    fn rules(&self) -> Box<dyn Rules>;
    /// Compiles a kernel once more, and says what it allows.
    fn compile(&self, key: &PipelineKey) -> Result<Compiled<()>, String>;
}

impl<B: Backend> Target for GpuDevice<B> {
    fn chip(&self) -> &ChipConfig {
        self.chip()
    }

    fn limits(&self) -> Limits {
        self.backend().limits()
    }

    fn rules(&self) -> Box<dyn Rules> {
        self.backend().rules(self.chip())
    }

    fn compile(&self, key: &PipelineKey) -> Result<Compiled<()>, String> {
        let made = self.backend().compiler().compile(key)?;
        Ok(Compiled {
            pipeline: (),
            max_threads: made.max_threads,
            threadgroup_room: made.threadgroup_room,
        })
    }
}

/// The kernels that run on a GPU, in the order of the table; on the simulator only one format of each.
pub fn kernels(target: &dyn Target, is_small: bool) -> Vec<KernelId> {
    let is_nvidia = matches!(target.name(), "cuda");
    let runs = |row: &KernelRow| match is_nvidia {
        true => nvidia::runs_on(row, target.chip()),
        false => row.family.is_metal(),
    };
    let is_wanted = |row: &KernelRow| {
        let one = akunu_types::DType::Q4_0;
        runs(row) && (!is_small || row.dtype.is_none_or(|dtype| dtype == one))
    };
    let all = KernelId::all().into_iter();
    all.filter(|kernel| is_wanted(&kernel.row())).collect()
}

/// Opens a device for `use_it`.
pub fn with(
    which: Which,
    ptx: Option<&Path>,
    use_it: impl FnOnce(&mut dyn Target) -> Result<(), Failure>,
) -> Result<(), Failure> {
    match which {
        Which::Metal => use_it(&mut metal()?),
        Which::Cuda => use_it(&mut gpu::open(ptx)?),
        Which::Sim => use_it(&mut simulator()?),
    }
}

/// Fails where a device cannot be there.
pub fn check(which: Which) -> Result<(), Failure> {
    match which {
        Which::Metal => metal().map(drop),
        Which::Cuda | Which::Sim => Ok(()),
    }
}

fn simulator() -> Result<SimDevice, Failure> {
    let root = workspace::root();
    let simulator = Simulator::new(&root.join("kernels"), &root.join("target/shaders/sim"));
    let simulator = simulator.map_err(|error| Failure::Found(error.to_string()))?;
    let backend = SimBackend::new(simulator, Schedule::Ascending);
    Ok(SimDevice::over(backend, ChipConfig::m1()))
}

#[cfg(target_os = "macos")]
fn metal() -> Result<akunu_kernels::MetalDevice, Failure> {
    let device = akunu_kernels::MetalDevice::new();
    device.map_err(|error| Failure::Found(error.to_string()))
}

#[cfg(not(target_os = "macos"))]
fn metal() -> Result<SimDevice, Failure> {
    Err(Failure::Unavailable {
        why: "the Metal device is on Macs only".to_owned(),
        fix: "--device sim runs the same on the simulator".to_owned(),
    })
}
