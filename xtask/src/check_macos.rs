//! `cargo xtask check-macos`: type-checks and lints the whole workspace for a Mac, on any machine.
//!
//! On a Mac this is plain clippy. Elsewhere nothing is linked, so no Apple SDK is needed, but the standard
//! library for `aarch64-apple-darwin` is. Either rustup brings it for the project's toolchain, and macros and build scripts are
//! those of the other steps; or Debian's Rust brings the source of it, which cargo then builds (`-Zbuild-std`).
//!
//! A check that compiles nothing would be clean too: first a type error is planted in the Metal code,
//! and the check must find it. It is the same command, so that what it has checked up to the error serves the second one.
//!
//! Debian's clippy may be newer than the project's. Warnings of our own crates are errors in both;
//! those of dependencies are not shown (cargo caps them).

use crate::debian_rust;
use crate::rust_target;
use akunu_repo::process::{self, ProcessError};
use akunu_repo::{Failure, workspace};
use std::process::Command;

const TARGET: &str = "aarch64-apple-darwin";
/// Where a Mac's clippy builds, below `target/`: the planted error would spoil what other commands have built.
const FOLDER: &str = "macos-check";
/// The shortest way where Debian's Rust cannot be installed.
const FIX: &str = "rustup target add aarch64-apple-darwin";

/// cargo builds the standard library even for a check. Nothing runs it: no machine code, and no crates that only print a
/// backtrace. Half the time of building it is saved.
const NO_CODE: &str = "-Zno-codegen";
const NO_BACKTRACE: &str = "";

/// What is checked. A single package would have other features than in the workspace, and its dependencies be checked twice.
const EVERYTHING: [&str; 2] = ["--workspace", "--all-targets"];
const NO_WARNING: [&str; 3] = ["--", "-D", "warnings"];

/// The crate with the Metal code, and what makes its build script plant a type error there.
const METAL_CRATE: &str = "akunu-kernels";
const PLANT: &str = "AKUNU_PLANTED_TYPE_ERROR";
/// What the compiler then says.
const PLANTED: [&str; 2] = ["crates/akunu-kernels/src/metal.rs", "mismatched types"];

/// Runs the command.
pub fn run() -> Result<(), Failure> {
    let mut planted = clippy()?;
    planted.args(EVERYTHING).args(NO_WARNING).env(PLANT, "1");
    must_find(process::output(&mut planted))?;
    let mut command = clippy()?;
    command
        .args(EVERYTHING)
        .arg("--keep-going")
        .args(NO_WARNING);
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

/// Installs what the check needs on this machine.
pub fn install() -> Result<(), Failure> {
    if cfg!(target_os = "macos") || rust_target::install(TARGET) {
        return Ok(());
    }
    debian_rust::install().map_err(with_shorter_fix)
}

fn clippy() -> Result<Command, Failure> {
    let mut command = if cfg!(target_os = "macos") {
        let mut command = process::cargo();
        command.args(["clippy", "--target-dir"]);
        command.arg(workspace::root().join("target").join(FOLDER));
        command
    } else if rust_target::is_there(TARGET) {
        let mut command = process::cargo();
        command.args(["clippy", "--target", TARGET]);
        command
    } else {
        let mut command =
            debian_rust::cargo("clippy", TARGET, NO_BACKTRACE).map_err(with_shorter_fix)?;
        command.env("RUSTFLAGS", NO_CODE);
        command
    };
    command.current_dir(workspace::root());
    Ok(command)
}

/// Adds what helps on any machine with rustup, and needs no root.
fn with_shorter_fix(failure: Failure) -> Failure {
    match failure {
        Failure::Unavailable { why, fix } => Failure::Unavailable {
            why,
            fix: format!("{FIX}; or {fix}"),
        },
        other => other,
    }
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

    #[test]
    fn whoever_cannot_install_packages_is_told_of_rustup() {
        let lacking = Failure::Unavailable {
            why: "rustc is wanted".to_owned(),
            fix: "apt-get".to_owned(),
        };
        let words = with_shorter_fix(lacking).to_string();
        assert_eq!(words, format!("rustc is wanted; {FIX}; or apt-get"));
    }
}
