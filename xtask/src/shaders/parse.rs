//! `cargo xtask shaders --parse`: an independent parser of MSL reads every flattened file.
//!
//! clang reads the kernels as C++ with macros for MSL's words, so that it would accept what is C++ and not MSL. crosstl, a
//! translator of shading languages, has a parser of MSL of its own. It knows the grammar but no types: an unknown name or a
//! wrong type is not found by it.

use crate::python::{environment, pip};
use akunu_kernels::flatten::{flatten, metal_files};
use akunu_repo::{Failure, process, workspace};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The parser, in the version that was tried.
const PACKAGE: &str = "crosstl==3.4.0";
/// The file that gets a syntax error, and the statement that loses its semicolon.
const PLANTED: (&str, &str) = ("norm/rmsnorm.metal", "const uint dim = params.dim;");

/// What the parser says of a file.
#[derive(Deserialize, Debug)]
struct Verdict {
    file: String,
    state: State,
    why: String,
}

#[derive(Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum State {
    /// It was read to its end.
    Ok,
    /// It was read, but not its member functions.
    Partly,
    /// It was refused.
    Syntax,
}

/// Runs the parser on a file with a planted error, then on all kernels.
pub fn run() -> Result<(), Failure> {
    let root = workspace::root();
    let python = environment(&root.join("target/python-crosstl"))?;
    pip(&python, |pip| pip.args(["install", PACKAGE]))?;
    let folder = root.join("target/shaders/flat");
    let files = write_flat(&root.join("kernels"), &folder)?;
    let planted = plant(&files, &folder)?;
    if verdicts(&python, &[planted])?
        .iter()
        .all(|verdict| verdict.state != State::Syntax)
    {
        let why = "the parser accepts a file with a planted syntax error";
        return Err(Failure::Found(why.to_owned()));
    }
    let paths: Vec<PathBuf> = files.into_iter().map(|(_, path)| path).collect();
    report(&verdicts(&python, &paths)?, paths.len())
}

/// Writes every kernel file as one text without includes; returns the names and the paths.
fn write_flat(kernels: &Path, folder: &Path) -> Result<Vec<(String, PathBuf)>, Failure> {
    std::fs::create_dir_all(folder).map_err(|error| Failure::io(folder, error))?;
    let found = |error: akunu_kernels::flatten::FlattenError| Failure::Found(error.to_string());
    let mut files = Vec::new();
    for file in metal_files(kernels).map_err(found)? {
        let source = flatten(kernels, &file).map_err(found)?;
        let path = folder.join(file.replace('/', "-"));
        std::fs::write(&path, source.text).map_err(|error| Failure::io(&path, error))?;
        files.push((file, path));
    }
    Ok(files)
}

/// A copy of one file without a semicolon.
fn plant(files: &[(String, PathBuf)], folder: &Path) -> Result<PathBuf, Failure> {
    let (name, statement) = PLANTED;
    let gone = || Failure::Found(format!("{name} has no `{statement}` any more"));
    let (_, path) = files
        .iter()
        .find(|(file, _)| file == name)
        .ok_or_else(gone)?;
    let text = std::fs::read_to_string(path).map_err(|error| Failure::io(path, error))?;
    let broken = text.replacen(statement, statement.trim_end_matches(';'), 1);
    if broken == text {
        return Err(gone());
    }
    let planted = folder.join("planted.metal");
    std::fs::write(&planted, broken).map_err(|error| Failure::io(&planted, error))?;
    Ok(planted)
}

fn verdicts(python: &Path, files: &[PathBuf]) -> Result<Vec<Verdict>, Failure> {
    let script = workspace::root().join("xtask/src/shaders/parse.py");
    let said = process::output(Command::new(python).arg(script).args(files))?;
    let read = |line| {
        serde_json::from_str(line).map_err(|error| Failure::Found(format!("{error}: {line}")))
    };
    said.lines().map(read).collect()
}

fn report(verdicts: &[Verdict], n_files: usize) -> Result<(), Failure> {
    let count = |state| {
        verdicts
            .iter()
            .filter(|verdict| verdict.state == state)
            .count()
    };
    for verdict in verdicts.iter().filter(|verdict| verdict.state != State::Ok) {
        println!("{}: {}", verdict.file, verdict.why);
    }
    let [accepted, partly] = [State::Ok, State::Partly].map(count);
    println!(
        "{accepted} of {n_files} files are accepted, {partly} are read in part; a planted error was found"
    );
    if accepted + partly == n_files {
        return Ok(());
    }
    let refused = n_files - accepted - partly;
    Err(Failure::Found(format!("{refused} files are refused")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(state: State) -> Verdict {
        Verdict {
            file: "a.metal".to_owned(),
            state,
            why: String::new(),
        }
    }

    /// A refused file, or one of which the parser said nothing, must end the command with an error.
    #[test]
    fn what_is_not_accepted_fails_the_command() {
        assert!(report(&[verdict(State::Ok), verdict(State::Partly)], 2).is_ok());
        assert!(report(&[verdict(State::Ok), verdict(State::Syntax)], 2).is_err());
        assert!(report(&[verdict(State::Ok)], 2).is_err());
    }
}
