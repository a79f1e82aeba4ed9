//! `cargo xtask python`: the Python package, built, installed and tested.
//!
//! pip builds the wheel in an environment of its own, as it does for whoever types `pip install .`; the wheel is installed
//! into another one below `target/`, and pytest runs against a real model.

use akunu_repo::{Failure, assets, process, workspace};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What tests need besides the package.
const TOOLS: [&str; 4] = ["pytest", "mypy", "pyright[nodejs]", "numpy"];

/// What tests read.
pub const ASSETS: &[&str] = &["smollm2", "minilm", "whisper-tiny.en", "jfk"];

/// Where all of this happens.
fn folder() -> PathBuf {
    workspace::root().join("target/python")
}

/// Builds the wheel and installs it into an environment, whose Python is returned.
pub fn install() -> Result<PathBuf, Failure> {
    let (root, folder) = (workspace::root(), folder());
    let python = environment(&folder.join("env"))?;
    pip(&python, |pip| pip.arg("install").args(TOOLS))?;
    let wheels = folder.join("wheels");
    if wheels.exists() {
        std::fs::remove_dir_all(&wheels).map_err(|error| Failure::io(&wheels, error))?;
    }
    pip(&python, |pip| {
        pip.args(["wheel", "--no-deps", "--wheel-dir"]).arg(&wheels);
        pip.arg(root.join("python"))
            .env("CARGO_TARGET_DIR", folder.join("cargo"))
    })?;
    let wheel = only_file(&wheels)?;
    pip(&python, |pip| {
        pip.args(["install", "--no-deps", "--force-reinstall"])
            .arg(&wheel)
    })?;
    let name = wheel.file_name().unwrap_or_default().to_string_lossy();
    let bytes = std::fs::metadata(&wheel).map_err(|error| Failure::io(&wheel, error))?;
    println!("{name} ({:.1} MB)", bytes.len() as f64 / 1e6);
    Ok(python)
}

/// Runs the command.
pub fn run() -> Result<(), Failure> {
    assets::ensure(ASSETS)?;
    let python = install()?;
    let (root, folder) = (workspace::root(), folder());
    // Not in the package's own folder, so that what is installed is tested and not its sources.
    let mut tests = Command::new(&python);
    tests.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"]);
    tests.arg("--import-mode=importlib");
    process::run(tests.arg(root.join("python/tests")).current_dir(&folder))?;
    let mut types = Command::new(&python);
    types.args(["-m", "mypy", "--strict", "--package", "akunu"]);
    process::run(types.current_dir(&folder))?;
    // Pyright checks only files of a project, so not what is installed.
    let mut types = Command::new(&python);
    types.args(["-m", "pyright", "--pythonpath"]).arg(&python);
    Ok(process::run(types.arg(root.join("python/akunu")))?)
}

/// Python in an environment of its own, which is made if it is not there.
pub fn environment(folder: &Path) -> Result<PathBuf, Failure> {
    let python = folder.join("bin/python");
    if !python.exists() {
        process::run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    }
    Ok(python)
}

/// Runs pip in such an environment.
pub fn pip(
    python: &Path,
    arguments: impl FnOnce(&mut Command) -> &mut Command,
) -> Result<(), Failure> {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check"]);
    Ok(process::run(arguments(&mut pip))?)
}

fn only_file(folder: &Path) -> Result<PathBuf, Failure> {
    let entries = std::fs::read_dir(folder).map_err(|error| Failure::io(folder, error))?;
    let mut files = entries.flatten().map(|entry| entry.path());
    files
        .next()
        .ok_or_else(|| Failure::Found("pip has made no wheel".to_owned()))
}
