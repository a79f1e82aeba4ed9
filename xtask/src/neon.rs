//! `cargo xtask neon`: runs the tests of the CPU device as a 64-bit ARM program, on any machine.
//!
//! On ARM this is plain `cargo test`. Elsewhere the project's own toolchain compiles for ARM, where rustup brings the standard
//! library, or else Debian's Rust does; `qemu-aarch64` runs it.

use crate::debian;
use crate::debian_rust;
use crate::rust_target;
use crate::tools::{Probe, Tool};
use akunu_repo::{Failure, process, workspace};
use std::process::Command;

const TARGET: &str = "aarch64-unknown-linux-gnu";
/// What compiles for ARM and runs it.
const TOOLS: [Tool; 3] = [
    Tool::any(
        "a gcc for 64-bit ARM",
        &["gcc-aarch64-linux-gnu"],
        Probe::Says(&["aarch64-linux-gnu-gcc", "--version"]),
    ),
    Tool::any(
        "the C library for 64-bit ARM",
        &["libc6-dev-arm64-cross"],
        Probe::Has("/usr/aarch64-linux-gnu/lib/crt1.o"),
    ),
    Tool::any(
        "an emulator of 64-bit ARM",
        &["qemu-user"],
        Probe::Says(&["qemu-aarch64", "--version"]),
    ),
];
/// How cargo links and runs programs of the target.
const SETTINGS: [(&str, &str); 2] = [
    (
        "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER",
        "aarch64-linux-gnu-gcc",
    ),
    (
        "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER",
        "qemu-aarch64 -L /usr/aarch64-linux-gnu",
    ),
];
/// An emulator makes the tests slow enough; more optimisation takes longer than it saves.
const OPTIMISED: [&str; 2] = [
    "profile.dev.opt-level=1",
    "profile.dev.package.akunu-cpu.opt-level=1",
];
/// Tests catch panics; nobody reads a backtrace.
const STD_FEATURES: &str = "panic-unwind";
/// The features of dependencies in the whole workspace, for which the macOS check has compiled the macros.
const AS_IN_THE_WORKSPACE: [&str; 3] = [
    "-Zfeature-unification",
    "--config",
    "resolver.feature-unification=\"workspace\"",
];
/// Arguments of `cargo xtask neon`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Only products of each format with one row, a few and many, on the CPU that has all instructions
    #[arg(long)]
    products: bool,
}

/// All tests that there are.
const ALL: &[&str] = &["--lib", "--tests"];
/// Products, which is where the instructions differ most.
const PRODUCTS: &[&str] = &["--test", "it", "table::vectors"];
/// The CPUs that are emulated, and the tests of each. The first has every level of instructions; the second has no products of
/// matrices, the third no dot products either, and both stop at an instruction that is not their own.
const CPUS: [(&str, &[&str]); 3] = [
    ("max", ALL),
    ("neoverse-n1", &["--lib", "matmul"]),
    (
        "cortex-a72",
        &["--lib", "--test", "it", "--", "device", "matmul"],
    ),
];

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    if args.products {
        return run_products();
    }
    run_on(&CPUS)
}

/// The products alone.
pub fn run_products() -> Result<(), Failure> {
    run_on(&[("max", PRODUCTS)])
}

/// Installs what the tests need on this machine.
pub fn install() -> Result<(), Failure> {
    if cfg!(target_arch = "aarch64") {
        return Ok(());
    }
    debian::ensure(&TOOLS)?;
    if rust_target::install(TARGET) {
        return Ok(());
    }
    debian_rust::install()
}

fn run_on(cpus: &[(&str, &[&str])]) -> Result<(), Failure> {
    if cfg!(target_arch = "aarch64") {
        let mut command = process::cargo();
        return test(command.arg("test"), cpus[0].1);
    }
    debian::ensure(&TOOLS)?;
    for &(cpu, tests) in cpus {
        println!("==> the tests of the CPU device on an emulated {cpu}");
        let mut command = cargo_test()?;
        command.envs(SETTINGS).env("QEMU_CPU", cpu);
        for setting in OPTIMISED {
            command.args(["--config", setting]);
        }
        test(&mut command, tests)?;
    }
    Ok(())
}

/// `cargo test` for ARM.
fn cargo_test() -> Result<Command, Failure> {
    if rust_target::is_there(TARGET) {
        let mut command = process::cargo();
        command.args(["test", "--target", TARGET]);
        return Ok(command);
    }
    let mut command = debian_rust::cargo("test", TARGET, STD_FEATURES)?;
    command.args(AS_IN_THE_WORKSPACE);
    Ok(command)
}

fn test(command: &mut Command, tests: &[&str]) -> Result<(), Failure> {
    command.args(["--package", "akunu-cpu"]).args(tests);
    Ok(process::run(command.current_dir(workspace::root()))?)
}
