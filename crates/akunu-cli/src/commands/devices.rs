//! `devices`: what this machine can compute with.

use super::Run;
use crate::failure::Failure;
use crate::units;
use akunu_cpu::Isa;
use akunu_program::host_memory;
use clap::Parser;
use serde::Serialize;
use std::fs;
use std::io::Write;
use std::process::Command;

/// Show the devices of this machine, and which one `--device auto` takes
#[derive(Parser)]
#[command(name = "devices")]
pub struct Devices {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One device.
#[derive(Serialize)]
struct Entry {
    name: String,
    /// The chip, or why the device cannot be used.
    about: String,
    available: bool,
    /// What `--device auto` takes.
    auto: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cores: Option<usize>,
    /// Levels of instructions, the best last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    isa: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    free_bytes: Option<u64>,
    /// Memory of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_bytes: Option<u64>,
    /// The newest CUDA that the driver knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    driver: Option<String>,
}

impl Run for Devices {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let entries = entries();
        if self.json {
            serde_json::to_writer_pretty(&mut *out, &entries)?;
            return Ok(writeln!(out)?);
        }
        for entry in &entries {
            let mark = if entry.auto { "*" } else { " " };
            writeln!(out, "{mark} {:<6} {}", entry.name, describe(entry))?;
        }
        Ok(writeln!(out, "* is what --device auto takes")?)
    }
}

fn entries() -> Vec<Entry> {
    let metal = match akunu::Device::Metal.open().map_err(Failure::from) {
        Ok(device) => (device.description(), true),
        Err(why) => (why.to_string(), false),
    };
    let cuda = cuda();
    let has_cuda = cuda.iter().any(|gpu| gpu.auto);
    let sim = match cfg!(feature = "sim") {
        true => "the Metal kernels on a CPU; needs clang",
        false => "not part of this program: build it with `--features sim`",
    };
    let twin = "the reference, one thread".to_string();
    let mut entries = cuda;
    entries.extend([
        Entry {
            auto: metal.1 && !has_cuda,
            ..plain("metal", metal.clone())
        },
        Entry {
            auto: !metal.1 && !has_cuda,
            cores: std::thread::available_parallelism().map(usize::from).ok(),
            isa: Isa::available().iter().map(|isa| isa.name()).collect(),
            free_bytes: host_memory::available(),
            ..plain("cpu", (cpu_name(), true))
        },
        plain("sim", (sim.to_string(), cfg!(feature = "sim"))),
        plain("twin", (twin, true)),
    ]);
    entries
}

fn plain(name: &str, (about, available): (String, bool)) -> Entry {
    Entry {
        name: name.to_owned(),
        about,
        available,
        auto: false,
        cores: None,
        isa: Vec::new(),
        free_bytes: None,
        memory_bytes: None,
        driver: None,
    }
}

/// Each NVIDIA GPU, or why there is none.
#[cfg(feature = "cuda")]
fn cuda() -> Vec<Entry> {
    let gpus = match akunu_cuda::gpus() {
        Ok(gpus) => gpus,
        Err(why) => return vec![plain("cuda", (why.to_string(), false))],
    };
    let entry = |gpu: akunu_cuda::GpuInfo| {
        let name = match gpu.ordinal {
            0 => "cuda".to_owned(),
            other => format!("cuda:{other}"),
        };
        let usable = gpu.judge();
        let about = usable
            .as_ref()
            .map_or_else(ToString::to_string, |()| gpu.name.clone());
        Entry {
            auto: gpu.ordinal == 0 && usable.is_ok(),
            memory_bytes: Some(gpu.memory),
            driver: Some(gpu.driver),
            ..plain(&name, (about, usable.is_ok()))
        }
    };
    gpus.into_iter().map(entry).collect()
}

#[cfg(not(feature = "cuda"))]
fn cuda() -> Vec<Entry> {
    vec![plain("cuda", (Failure::NoCuda.to_string(), false))]
}

fn describe(entry: &Entry) -> String {
    let mut parts = vec![entry.about.clone()];
    let memory = entry.memory_bytes.map(units::bytes);
    parts.extend(memory.map(|memory| format!("{memory} of memory")));
    let driver = entry.driver.as_ref();
    parts.extend(driver.map(|version| format!("driver for CUDA {version}")));
    parts.extend(entry.cores.map(|cores| format!("{cores} cores")));
    if !entry.isa.is_empty() {
        parts.push(entry.isa.join(" "));
    }
    let free = entry.free_bytes.map(units::bytes);
    parts.extend(free.map(|free| format!("{free} of memory free")));
    parts.join(", ")
}

/// The processor's name, where the system tells: in a file on Linux, by a program on a Mac.
fn cpu_name() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    let in_file = line.and_then(|line| line.split_once(':'));
    if let Some((_, name)) = in_file {
        return name.trim().to_string();
    }
    let mut sysctl = Command::new("sysctl");
    let told = sysctl.args(["-n", "machdep.cpu.brand_string"]).output();
    let told = told.ok().filter(|output| output.status.success());
    match told {
        Some(output) => String::from_utf8_lossy(&output.stdout).trim().to_string(),
        None => std::env::consts::ARCH.to_string(),
    }
}
