//! Debian's Rust, for targets whose standard library the project's own toolchain does not have: it comes with
//! the sources of the standard library, and cargo builds that too (`-Zbuild-std`).

use crate::debian;
use crate::tools::{Probe, Tool};
use akunu_repo::{Failure, workspace};
use std::path::Path;
use std::process::Command;

const BIN: &str = "/usr/bin";
/// The oldest Rust that compiles the workspace.
const OLDEST: &str = env!("CARGO_PKG_RUST_VERSION");
/// They only work together at one version, so that they are always installed together.
const PACKAGES: &[&str] = &["rustc-web", "cargo-web", "rust-web-clippy", "rust-web-src"];
/// What Debian's Rust is made of.
const TOOLS: [Tool; 4] = [
    part("rustc", &["/usr/bin/rustc", "--version"]),
    part("cargo", &["/usr/bin/cargo", "--version"]),
    part(
        "clippy",
        &["/usr/bin/clippy-driver", "--rustc", "--version"],
    ),
    // Sources do not say their version; their package does.
    part(
        "the source of Rust's standard library",
        &[
            "dpkg-query",
            "--show",
            "--showformat=${Version}",
            "rust-web-src",
        ],
    ),
];

const fn part(name: &'static str, says: &'static [&'static str]) -> Tool {
    Tool {
        name,
        packages: PACKAGES,
        probe: Probe::Says(says),
        oldest: OLDEST,
    }
}

/// Where it builds, below `target/`: one folder for all targets, so that macros are compiled once.
const FOLDER: &str = "debian-rust";
/// Little that is compiled here runs for long: the profile's optimisations would only cost time.
const UNOPTIMISED: [&str; 3] = [
    "profile.dev.opt-level=0",
    "profile.dev.debug=false",
    "profile.dev.package.\"*\".opt-level=0",
];
/// Names that rustup or an outer cargo sets for the project's toolchain; they would mix the two.
const OTHER_TOOLCHAIN: [&str; 5] = [
    "CARGO",
    "CARGO_TARGET_DIR",
    "LD_LIBRARY_PATH",
    "RUSTUP_TOOLCHAIN",
    "RUSTDOC",
];

/// Sees to it that Debian's Rust is there and new enough.
pub fn install() -> Result<(), Failure> {
    debian::ensure(&TOOLS)
}

/// A command of Debian's cargo for `target`, with these features of the standard library.
pub fn cargo(subcommand: &str, target: &str, std_features: &str) -> Result<Command, Failure> {
    install()?;
    let bin = Path::new(BIN);
    let mut command = Command::new(bin.join("cargo"));
    for name in OTHER_TOOLCHAIN {
        command.env_remove(name);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(bin.to_path_buf()).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(path)
        .map_err(|e| Failure::Found(format!("PATH cannot be extended by {BIN}: {e}")))?;
    command.env("PATH", path).env("RUSTC", bin.join("rustc"));
    // Allows -Z options on a stable compiler.
    command.env("RUSTC_BOOTSTRAP", "1");
    command.args([subcommand, "-Zbuild-std", "--target", target]);
    command.arg(format!("-Zbuild-std-features={std_features}"));
    command.arg("--target-dir");
    command.arg(workspace::root().join("target").join(FOLDER));
    for setting in UNOPTIMISED {
        command.args(["--config", setting]);
    }
    Ok(command)
}
