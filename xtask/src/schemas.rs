//! `cargo xtask schemas`: JSON schemas that others have written against our grammars.
//!
//! Packages of PyPI have them: the sources of `jsonschema` hold JSON-Schema-Test-Suite, `cfn-lint` has the schemas of all
//! resources of CloudFormation, `kubernetes-validate` those of the objects of Kubernetes. Every test of the suite goes
//! through our grammars; by each of the others a random text is made that its grammar allows, and `jsonschema` says whether
//! it is valid. docs/structured.md has the results.
//! It is no part of `cargo xtask test`: it takes minutes.

use crate::python::{environment, pip};
use akunu_repo::{Failure, process, workspace};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Has the suite in its sources, and says whether texts are valid.
const VALIDATOR: &str = "jsonschema==4.26.0";
/// Have many schemas.
const SCHEMAS: [&str; 2] = ["cfn-lint==1.58.0", "kubernetes-validate==1.37.0"];
/// Whose vocabulary is used.
const MODEL: &str = "smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";

/// Runs the command.
pub fn run() -> Result<(), Failure> {
    let model = workspace::assets().join(MODEL);
    if !model.exists() {
        let model = model.display();
        return Err(Failure::Found(format!(
            "{model} is not there: `cargo xtask assets` fetches it"
        )));
    }
    let folder = workspace::root().join("target/schemas");
    let python = environment(&folder.join("python"))?;
    let script = workspace::root().join("xtask/src/schemas/schemas.py");
    if !folder.join("suite").exists() {
        fetch(&python, &script, &folder)?;
    }
    let texts = folder.join("texts.jsonl");
    example(&["suite"], &[&model, &folder.join("suite")])?;
    example(&["walk"], &[&model, &folder.join("schemas"), &texts])?;
    let mut validate = Command::new(&python);
    Ok(process::run(
        validate.arg(&script).arg("validate").arg(&texts),
    )?)
}

/// Downloads both packages and takes the schemas out of them.
fn fetch(python: &Path, script: &Path, folder: &Path) -> Result<(), Failure> {
    let packages = folder.join("packages");
    pip(python, |pip| pip.args(["install", VALIDATOR]))?;
    pip(python, |pip| {
        let pip = pip.args(["download", "--no-deps", "--no-binary", ":all:", VALIDATOR]);
        pip.arg("--dest").arg(&packages)
    })?;
    pip(python, |pip| {
        let pip = pip.args(["download", "--no-deps"]).args(SCHEMAS);
        pip.arg("--dest").arg(&packages)
    })?;
    let mut unpack = Command::new(python);
    unpack.arg(script).arg("unpack").arg(&packages).arg(folder);
    Ok(process::run(&mut unpack)?)
}

/// Runs the example that has the engine.
fn example(words: &[&str], paths: &[&PathBuf]) -> Result<(), Failure> {
    let mut cargo = process::cargo();
    cargo.args([
        "run",
        "--quiet",
        "-p",
        "akunu-engine",
        "--example",
        "schemas",
        "--",
    ]);
    cargo.args(words).args(paths);
    Ok(process::run(cargo.current_dir(workspace::root()))?)
}
