//! `cargo xtask neon`: runs the tests of the CPU device as a 64-bit ARM program, on any machine.
//!
//! On ARM this is plain `cargo test`. Elsewhere Debian's Rust compiles for ARM and `qemu-aarch64` runs it.

use crate::debian;
use crate::debian_rust;
use crate::failure::Failure;
use crate::process;
use crate::workspace;
use std::process::Command;

const TARGET: &str = "aarch64-unknown-linux-gnu";
/// The Debian packages, each with a file that shows whether it is there.
const PACKAGES: [(&str, &str); 2] = [
    ("gcc-aarch64-linux-gnu", "/usr/bin/aarch64-linux-gnu-gcc"),
    ("qemu-user", "/usr/bin/qemu-aarch64"),
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
/// An emulator makes the tests slow enough.
const OPTIMISED: &str = "profile.dev.opt-level=1";

/// Runs the command.
pub fn run() -> Result<(), Failure> {
    let mut command = if cfg!(target_arch = "aarch64") {
        let mut command = process::cargo();
        command.arg("test");
        command
    } else {
        emulated()?
    };
    command.args(["--package", "akunu-cpu", "--lib", "--tests"]);
    command.current_dir(workspace::root());
    process::run(&mut command)?;
    Ok(())
}

fn emulated() -> Result<Command, Failure> {
    debian::install_missing(&PACKAGES)?;
    let mut command = debian_rust::cargo("test", TARGET, "neon")?;
    command.envs(SETTINGS).args(["--config", OPTIMISED]);
    Ok(command)
}
