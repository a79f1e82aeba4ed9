//! The machine and its system.

use super::record::{Machine, Record};
use super::target::Target;
use std::process::Command;

pub fn run(target: &mut dyn Target) {
    let (chip, limits) = (target.chip().clone(), target.limits());
    Record::Machine(Machine {
        chip: chip.name,
        family: format!("{:?}", chip.family),
        gpu_cores: chip.gpu_cores,
        max_threads: chip.max_threads,
        threadgroup_bytes: chip.threadgroup_bytes,
        bytes_per_second: chip.bytes_per_second,
        max_buffer: limits.max_buffer as u64,
        budget: limits.budget,
        memory: asked("sysctl", &["-n", "hw.memsize"]).and_then(|text| text.parse().ok()),
        model: asked("sysctl", &["-n", "hw.model"]),
        system: std::env::consts::OS.to_owned(),
        version: asked("sw_vers", &["-productVersion"]),
        akunu: env!("CARGO_PKG_VERSION").to_owned(),
    })
    .print();
}

/// What a program of macOS says; `None` elsewhere.
fn asked(program: &str, arguments: &[&str]) -> Option<String> {
    if !cfg!(target_os = "macos") {
        return None;
    }
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}
