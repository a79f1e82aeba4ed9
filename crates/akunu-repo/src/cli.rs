//! `akunu-cli`, built from this workspace.

use crate::{Failure, process, workspace};
use std::path::PathBuf;

/// How it is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Quick to build.
    Development,
    /// Quick to run.
    Release,
}

/// Builds `akunu-cli` with these features besides its usual ones, and returns the program.
///
/// # Errors
/// If cargo fails.
pub fn build(profile: Profile, features: &[&str]) -> Result<PathBuf, Failure> {
    let mut build = process::cargo();
    build.args(["build", "-p", "akunu-cli"]);
    if !features.is_empty() {
        build.args(["--features", &features.join(",")]);
    }
    let folder = match profile {
        Profile::Development => "debug",
        Profile::Release => {
            build.arg("--release");
            "release"
        }
    };
    process::run_beside(build.current_dir(workspace::root()))?;
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| workspace::root().join("target"), PathBuf::from);
    Ok(target.join(folder).join("akunu-cli"))
}
