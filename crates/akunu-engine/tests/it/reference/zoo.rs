//! Models of other shapes than the recorded ones, which `cargo xtask zoo` draws from a seed.
#![allow(clippy::print_stdout, reason = "the table is the result of a command")]

use std::path::Path;

use akunu_engine::EngineError;

use super::{BOUND, devices, worst_error};
use crate::support::files::{write_folder, write_gguf};
use crate::support::fixture::Fixture;

/// The folder that `cargo xtask zoo` has filled.
const FOLDER: &str = "AKUNU_ZOO";

/// Prints the error of each model from both containers on both devices; fails after the last one if one is too large.
#[test]
#[ignore = "cargo xtask zoo makes the models"]
fn zoo() {
    let folder = std::env::var(FOLDER).expect("cargo xtask zoo names the folder");
    let entries = std::fs::read_dir(&folder).expect("the folder");
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.expect("an entry").file_name().into_string().ok())
        .filter(|name| name.ends_with(".json"))
        .collect();
    names.sort_unstable();
    assert!(!names.is_empty(), "{folder} has no models");
    println!("| model | GGUF, twins | GGUF, CPU | folder, twins | folder, CPU | rounding |");
    println!("|---|---|---|---|---|---|");
    let wrong: Vec<&str> = names
        .iter()
        .filter(|name| !agrees(&Path::new(&folder).join(name)))
        .map(String::as_str)
        .collect();
    assert!(wrong.is_empty(), "too far off: {}", wrong.join(", "));
}

/// Prints the row of a model; whether all of its errors are small enough.
fn agrees(path: &Path) -> bool {
    let model = Fixture::open(path);
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let paths = [
        write_gguf(&model, folder.path()),
        write_folder(&model, folder.path()),
    ];
    let mut errors = Vec::new();
    for path in &paths {
        for device in devices() {
            errors.push(worst_error(&model, path, device));
        }
    }
    let cell = |error: &Result<f64, EngineError>| match error {
        Ok(error) => format!("{error:.1e}"),
        Err(error) => error.to_string(),
    };
    let cells: Vec<String> = errors.iter().map(cell).collect();
    println!(
        "| `{name}` | {} | {:.1e} |",
        cells.join(" | "),
        model.rounding
    );
    // A value that is rounded to its other neighbour costs a part of all rounding.
    let bound = BOUND.max(3.0 * model.rounding);
    let is_small = |error: Result<f64, EngineError>| error.is_ok_and(|error| error < bound);
    errors.into_iter().all(is_small)
}
