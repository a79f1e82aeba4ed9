//! `cargo xtask zoo`: small models of every architecture, with shapes that are drawn from a seed, against `transformers`.
//!
//! The scripts that record the models of the tests make them with other sizes, as `shapes.py` draws them, and compute their
//! logits. The engine's tests then run each from a GGUF file and from a folder, with the twins and on the CPU.

use crate::python::{environment, pip};
use akunu_repo::{Failure, process, workspace};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The scripts that record models of decoders.
const SCRIPTS: [&str; 4] = [
    "make_model_fixtures.py",
    "make_dense_fixtures.py",
    "make_expert_fixtures.py",
    "make_state_fixtures.py",
];
/// Python packages that the scripts import.
const PACKAGES: [&str; 5] = [
    "torch",
    "transformers==5.23.0",
    "gguf",
    "numpy",
    "safetensors",
];
/// The folder of the models and the seed, as the scripts and the test know them.
const FOLDER: &str = "AKUNU_ZOO";
const SEED: &str = "AKUNU_ZOO_SEED";

/// Arguments of `cargo xtask zoo`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The number that all sizes follow from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A Python that has torch, transformers, gguf and safetensors; without it, they are installed into target/zoo
    #[arg(long, value_name = "FILE")]
    python: Option<PathBuf>,
    /// Names of models, as the scripts have them; without any, all models
    #[arg(value_name = "MODEL")]
    models: Vec<String>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let root = workspace::root();
    let python = match &args.python {
        Some(python) => python.clone(),
        None => installed(&root)?,
    };
    let folder = root.join(format!("target/zoo/{}", args.seed));
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|error| Failure::io(&folder, error))?;
    }
    std::fs::create_dir_all(&folder).map_err(|error| Failure::io(&folder, error))?;
    let fixtures = root.join("crates/akunu-engine/tests/fixtures");
    for script in SCRIPTS {
        let mut make = Command::new(&python);
        make.arg(fixtures.join(script)).args(&args.models);
        make.env(FOLDER, &folder).env(SEED, args.seed.to_string());
        process::run_beside(&mut make)?;
    }
    let mut test = process::cargo();
    test.args(["test", "-p", "akunu-engine", "--test", "it", "--"]);
    test.args(["--ignored", "--exact", "--nocapture", "reference::zoo::zoo"]);
    test.env(FOLDER, &folder).current_dir(&root);
    Ok(process::run(&mut test)?)
}

/// A separate Python environment with all packages.
fn installed(root: &Path) -> Result<PathBuf, Failure> {
    let python = environment(&root.join("target/zoo/env"))?;
    pip(&python, |pip| pip.arg("install").args(PACKAGES))?;
    Ok(python)
}
