//! `cargo xtask features`: the tests of the table of features in `docs/library.md`, in Rust, C and Python.
//!
//! Each row has a test in each language, called by the row's words: `a conversation` is `a_conversation` in
//! `crates/akunu/tests/it/features.rs` and `crates/akunu-c/tests/it/features.c`, and `test_a_conversation` in
//! `python/tests/test_features.py`. The cells whose tests pass get a check mark.

#[cfg(test)]
mod checks;
mod table;

use crate::python;
use akunu_repo::{Failure, assets, workspace};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What to run.
#[derive(clap::Args)]
pub struct Args {
    /// A Python that has the package and pytest; without it, the wheel is built and installed into target/python
    #[arg(long, value_name = "PYTHON")]
    python: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    assets::ensure(python::ASSETS)?;
    let python = match &args.python {
        Some(python) => python.clone(),
        None => python::install()?,
    };
    let passed = [
        of_rust(&cargo("akunu", &["features::"])?),
        of_c(&cargo("akunu-c", &["every_feature_works", "--nocapture"])?),
        of_python(&pytest(&python)?),
    ];
    let path = workspace::root().join(table::PAGE);
    let page = std::fs::read_to_string(&path).map_err(|error| Failure::io(&path, error))?;
    let new = table::marked(&page, &passed);
    std::fs::write(&path, &new).map_err(|error| Failure::io(&path, error))?;
    let mut missing = Vec::new();
    for row in table::rows(&new) {
        let languages = table::LANGUAGES.iter().zip(row.marked);
        let without = languages.filter(|(_, is_marked)| !is_marked);
        missing.extend(without.map(|(language, _)| format!("{language}: {}", row.test())));
    }
    println!("{} rows in {}", table::rows(&new).count(), table::PAGE);
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Failure::Found(format!(
            "not passed: {}",
            missing.join(", ")
        ))),
    }
}

/// All that a program writes on stdout, whether it fails or not; errors go where ours go.
fn stdout(command: &mut Command) -> Result<String, Failure> {
    let output = command.stderr(std::process::Stdio::inherit()).output();
    let output = output.map_err(|error| Failure::io(Path::new(command.get_program()), error))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    print!("{text}");
    Ok(text)
}

fn cargo(package: &str, arguments: &[&str]) -> Result<String, Failure> {
    let mut cargo = Command::new("cargo");
    cargo.args(["test", "--package", package, "--test", "it", "--"]);
    stdout(cargo.args(arguments).current_dir(workspace::root()))
}

fn pytest(python: &Path) -> Result<String, Failure> {
    let root = workspace::root();
    let mut tests = Command::new(python);
    tests.args(["-m", "pytest", "-rA", "--quiet", "-p", "no:cacheprovider"]);
    tests.arg("--import-mode=importlib");
    stdout(
        tests
            .arg(root.join("python/tests/test_features.py"))
            .current_dir(root.join("target")),
    )
}

/// `test features::NAME ... ok`
fn of_rust(said: &str) -> BTreeSet<String> {
    let name = |line: &str| {
        Some(
            line.strip_prefix("test features::")?
                .strip_suffix(" ... ok")?
                .into(),
        )
    };
    said.lines().filter_map(name).collect()
}

/// `feature NAME`
fn of_c(said: &str) -> BTreeSet<String> {
    let name = |line: &str| Some(line.strip_prefix("feature ")?.into());
    said.lines().filter_map(name).collect()
}

/// `PASSED FILE::test_NAME`
fn of_python(said: &str) -> BTreeSet<String> {
    let name = |line: &str| {
        Some(
            line.strip_prefix("PASSED ")?
                .split_once("::test_")?
                .1
                .into(),
        )
    };
    said.lines().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when a test that failed gets a mark, one that passed gets none, or a mark stays that no test has made.
    #[test]
    fn only_tests_that_have_passed_give_marks() {
        let page = "# In Rust, C and Python\n\nWords.\n\n| feature | Rust | C | Python |\n|---|---|---|---|\n\
                    | a text, that goes on | `a` | ✓ `b` | ✓ `c`, `d` |\n| many texts | `a` | `b` | `c` |\n\nMore | words.\n";
        let passed = [
            of_rust(
                "running 2 tests\ntest features::a_text_that_goes_on ... ok\ntest features::many_texts ... FAILED\n",
            ),
            of_c("feature many_texts\nline 3: failed"),
            of_python(
                "PASSED tests/test_features.py::test_many_texts\nFAILED tests/test_features.py::test_a_text_that_goes_on",
            ),
        ];
        let wanted = page
            .replace(
                "on | `a` | ✓ `b` | ✓ `c`, `d` |",
                "on | ✓ `a` | `b` | `c`, `d` |",
            )
            .replace("texts | `a` | `b` | `c` |", "texts | `a` | ✓ `b` | ✓ `c` |");
        assert_eq!(table::marked(page, &passed), wanted);
        assert_eq!(table::marked(&wanted, &passed), wanted);
    }
}
