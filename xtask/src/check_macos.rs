//! `cargo xtask check-macos`: type-checks and lints the whole workspace for a Mac, on any machine.
//!
//! On a Mac this is plain clippy. On Linux it is Debian's Rust, which comes with the sources of the
//! standard library: cargo builds that for `aarch64-apple-darwin` (`-Zbuild-std`) and clippy checks
//! everything on top; nothing is linked, so no Apple SDK is needed. The rustup toolchain of the
//! project would have to download the target's standard library instead.
//!
//! A check that compiles nothing would be clean too: first a type error is planted in the Metal code,
//! and the check must find it.
//!
//! Debian's clippy may be newer than the project's. Warnings of our own crates are errors in both;
//! those of dependencies are not shown (cargo caps them).

use crate::debian;
use crate::debian_rust;
use crate::failure::Failure;
use crate::process::{self, ProcessError};
use crate::workspace;
use std::process::Command;

const TARGET: &str = "aarch64-apple-darwin";
/// What clippy needs beside the compiler.
const CLIPPY: (&str, &str) = ("rust-web-clippy", "/usr/bin/cargo-clippy");

/// The crate with the Metal code, and what makes its build script plant a type error there.
const METAL_CRATE: &str = "akunu-kernels";
const PLANT: &str = "AKUNU_PLANTED_TYPE_ERROR";
/// What the compiler then says.
const PLANTED: [&str; 2] = ["crates/akunu-kernels/src/metal.rs", "mismatched types"];

/// Runs the command.
pub fn run() -> Result<(), Failure> {
    let mut planted = clippy()?;
    planted.args(["--package", METAL_CRATE, "--lib"]);
    planted.env(PLANT, "1");
    must_find(process::output(&mut planted))?;
    let mut command = clippy()?;
    command.args(["--workspace", "--all-targets", "--keep-going"]);
    command.args(["--", "-D", "warnings"]);
    process::run(&mut command)?;
    println!("the workspace checks cleanly for {TARGET}");
    Ok(())
}

/// Fails unless the compiler found the planted error.
fn must_find(planted: Result<String, ProcessError>) -> Result<(), Failure> {
    let Err(error) = planted else {
        return Err(Failure::Found(format!(
            "a type error planted in the Metal code of {METAL_CRATE} was not found: it is not compiled"
        )));
    };
    let said = error.to_string();
    if PLANTED.iter().all(|words| said.contains(words)) {
        println!("a type error planted in the Metal code was found");
        return Ok(());
    }
    Err(error.into())
}

fn clippy() -> Result<Command, Failure> {
    let mut command = if cfg!(target_os = "macos") {
        native()
    } else {
        on_linux()?
    };
    command.current_dir(workspace::root());
    Ok(command)
}

fn native() -> Command {
    let mut command = process::cargo();
    command.arg("clippy");
    command
}

fn on_linux() -> Result<Command, Failure> {
    debian::install_missing(&[CLIPPY])?;
    debian_rust::cargo("clippy", TARGET, "macos-check")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(said: &str) -> Result<String, ProcessError> {
        Err(ProcessError::Failed {
            program: "cargo clippy".into(),
            status: std::process::ExitStatus::default(),
            said: said.into(),
        })
    }

    /// Breaks when a clean check, or a check that fails for another reason, passes for a found error.
    #[test]
    fn only_the_planted_error_counts_as_found() {
        assert!(must_find(failed(&PLANTED.join(":75: "))).is_ok());
        let clean = must_find(Ok(String::new())).expect_err("nothing was found");
        assert!(clean.to_string().contains("not compiled"), "{clean}");
        assert!(must_find(failed("no network")).is_err());
    }
}
