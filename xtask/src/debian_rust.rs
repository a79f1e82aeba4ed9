//! Debian's Rust, for targets whose standard library the project's own toolchain does not have: it comes with
//! the sources of the standard library, and cargo builds that too (`-Zbuild-std`).

use crate::debian;
use crate::failure::Failure;
use crate::workspace;
use std::path::Path;
use std::process::Command;

const BIN: &str = "/usr/bin";
/// The Debian packages, each with a file that shows whether it is there.
const PACKAGES: [(&str, &str); 3] = [
    ("rustc-web", "/usr/bin/rustc"),
    ("cargo-web", "/usr/bin/cargo"),
    (
        "rust-web-src",
        "/usr/lib/rustlib/src/rust/library/Cargo.toml",
    ),
];
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

/// A command of Debian's cargo for `target`, with a folder of its own below `target/`.
pub fn cargo(subcommand: &str, target: &str, folder: &str) -> Result<Command, Failure> {
    debian::install_missing(&PACKAGES)?;
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
    command.arg("--target-dir");
    command.arg(workspace::root().join("target").join(folder));
    for setting in UNOPTIMISED {
        command.args(["--config", setting]);
    }
    Ok(command)
}
