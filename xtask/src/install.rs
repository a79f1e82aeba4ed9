//! `cargo xtask install`: the tools that tests need beside Rust, gcc and Python.
//!
//! All at once, so that apt-get runs once. A step whose tool is still lacking says so itself.

use crate::tools::{CLANG, CXX, NPM, PIP};
use crate::{check_macos, debian, neon};
use akunu_repo::{Failure, process};
use std::process::Command;

/// Installs what is missing or too old.
pub fn run() -> Result<(), Failure> {
    for (component, subcommand) in [("clippy", "clippy"), ("rustfmt", "fmt")] {
        if process::output(process::cargo().args([subcommand, "--version"])).is_err() {
            process::run(Command::new("rustup").args(["component", "add", component]))?;
        }
    }
    let tools = debian::ensure(&[CLANG, CXX, PIP, NPM]);
    let rust = check_macos::install();
    let arm = neon::install();
    tools.and(rust).and(arm)
}
