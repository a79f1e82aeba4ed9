//! Which device computes.

use crate::failure::Failure;
use crate::terminal::warn;
use akunu::{CpuOptions, Isa};
use akunu_program::Device;
use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::{Args, ValueEnum};
use std::ffi::OsStr;

/// What `--device` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DeviceName {
    /// An NVIDIA GPU or a Mac's GPU if there is one, else the CPU
    Auto,
    /// All cores of this machine
    Cpu,
    /// The first NVIDIA GPU; cuda:1 is the second. Needs a build with the feature cuda
    Cuda,
    /// The GPU of a Mac
    Metal,
    /// The Metal kernels on a CPU: for developers, needs clang
    Sim,
    /// The specification of the others: plain Rust, one thread, slow
    Twin,
}

/// A device, and which one of several GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceChoice {
    name: DeviceName,
    ordinal: u32,
}

/// Reads a [`DeviceChoice`]: a name, and behind `cuda` the number of the GPU, as in `cuda:1`.
#[derive(Clone)]
struct ChoiceParser;

impl TypedValueParser for ChoiceParser {
    type Value = DeviceChoice;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<DeviceChoice, clap::Error> {
        let numbered = value.to_str().and_then(|text| text.strip_prefix("cuda:"));
        if let Some(ordinal) = numbered.and_then(|number| number.parse().ok()) {
            let name = DeviceName::Cuda;
            return Ok(DeviceChoice { name, ordinal });
        }
        let names = EnumValueParser::<DeviceName>::new();
        let name = names.parse_ref(command, argument, value)?;
        Ok(DeviceChoice { name, ordinal: 0 })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let names = DeviceName::value_variants().iter();
        Some(Box::new(names.filter_map(ValueEnum::to_possible_value)))
    }
}

/// Which device computes, and how.
#[derive(Args, Clone)]
pub struct DeviceArgs {
    /// The device that runs the model
    #[arg(long, value_parser = ChoiceParser, default_value = "auto")]
    device: DeviceChoice,
    /// Instruction set of the CPU device, for comparisons: scalar, neon, dotprod, i8mm, avx2, avxvnni, avx512, amx
    #[arg(long, value_name = "LEVEL", hide_short_help = true)]
    isa: Option<Isa>,
    /// CPU device: multiply prompts as exactly as single tokens, which is slower with quantised weights
    #[arg(long, hide_short_help = true)]
    exact: bool,
}

impl DeviceArgs {
    /// Makes the device; `threads` are those of the CPU device.
    pub fn open(&self, threads: Option<usize>) -> Result<Box<dyn Device>, Failure> {
        let cpu = || {
            let threads = threads.map(usable_threads);
            akunu::Device::Cpu(CpuOptions {
                threads,
                isa: self.isa,
                exact: self.exact,
                warn: Some(warn),
                ..CpuOptions::default()
            })
            .open()
        };
        let gpu = |ordinal| akunu::Device::Cuda(ordinal).open();
        Ok(match self.device.name {
            DeviceName::Auto => gpu(0)
                .or_else(|_| akunu::Device::Metal.open())
                .or_else(|_| cpu())?,
            DeviceName::Cpu => cpu()?,
            DeviceName::Cuda => gpu(self.device.ordinal)?,
            DeviceName::Metal => akunu::Device::Metal.open()?,
            DeviceName::Sim => simulator()?,
            DeviceName::Twin => akunu::Device::Twin.open()?,
        })
    }
}

/// As many threads as were asked for, but no more than there are cores that the process may use. Threads
/// of one step wait for each other, so that each one too many makes all of them wait for its turn.
pub fn usable_threads(asked: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if asked > cores {
        warn(&format!(
            "{asked} threads were asked for; {cores} are used, one for each core that this program may use"
        ));
    }
    asked.min(cores)
}

#[cfg(not(feature = "sim"))]
fn simulator() -> Result<Box<dyn Device>, Failure> {
    Err(Failure::NoSimulator)
}

/// The simulator over the kernels that are embedded in this program: they are written to the cache,
/// where their compiled forms go too.
#[cfg(feature = "sim")]
fn simulator() -> Result<Box<dyn Device>, Failure> {
    use akunu_kernels::sources::{HASH, SOURCES};
    use akunu_sim::{Schedule, SimBackend, SimDevice, Simulator};
    let cache = crate::cache::folder().ok_or(Failure::NoCache)?.join("sim");
    let folder = cache.join(format!("{HASH:016x}"));
    for (name, text) in SOURCES {
        let path = folder.join(name);
        let write = || {
            std::fs::create_dir_all(path.parent().unwrap_or(&folder))?;
            std::fs::write(&path, text)
        };
        write().map_err(|source| Failure::Write {
            path: path.clone(),
            source,
        })?;
    }
    let simulator = Simulator::new(&folder, &cache.join("compiled"))?;
    let backend = SimBackend::new(simulator, Schedule::default());
    Ok(Box::new(SimDevice::over(
        backend,
        akunu_kernels::ChipConfig::m1(),
    )))
}
