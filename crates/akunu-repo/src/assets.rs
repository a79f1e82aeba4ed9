//! The real models, tokenizers and sounds of the catalogue, in `target/assets/<name>/`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "commands that fetch assets tell of each download"
)]

use crate::{Failure, workspace};
use akunu_fetch::{
    Asset, Catalogue, FetchError, Installed, Order, Sources, Watch, install, megabytes,
};
use std::path::Path;

/// The catalogue that the program carries.
///
/// # Errors
/// If the catalogue is not valid.
pub fn catalogue() -> Result<Catalogue, Failure> {
    Ok(Catalogue::embedded().map_err(FetchError::from)?)
}

/// The assets of these names; no name means all.
///
/// # Errors
/// A usage error with the known names, if there is no asset of a name.
pub fn choose<'a>(catalogue: &'a Catalogue, names: &[&str]) -> Result<Vec<&'a Asset>, Failure> {
    if names.is_empty() {
        return Ok(catalogue.assets.iter().collect());
    }
    let find = |name: &&str| catalogue.get(name).ok_or_else(|| unknown(catalogue, name));
    names.iter().map(find).collect()
}

/// Fetches these assets into `target/assets`, where they are not there yet.
///
/// # Errors
/// If a name is unknown, or a download fails or has the wrong hash.
pub fn ensure(names: &[&str]) -> Result<(), Failure> {
    fetch(&choose(&catalogue()?, names)?, &workspace::assets(), false)
}

/// Fetches these assets into a folder; with `force` also those that are there already.
///
/// # Errors
/// If a download fails or has the wrong hash.
pub fn fetch(assets: &[&Asset], into: &Path, force: bool) -> Result<(), Failure> {
    let order = Order {
        source: &Sources { hub: None },
        watch: &Lines,
        force,
    };
    for asset in assets {
        let done = match install(asset, into, &order)? {
            Installed::Present => "present",
            Installed::Fetched => "fetched, checked and unpacked",
        };
        let folder = into.join(&asset.name);
        println!(
            "{}: {done}, {} in {}",
            asset.name,
            megabytes(asset.bytes()),
            shown(&folder)
        );
    }
    Ok(())
}

/// Tells of downloads in a line for each.
struct Lines;

impl Watch for Lines {
    fn begin(&self, what: &str, bytes: u64) {
        eprintln!("{what} ({})", megabytes(bytes));
    }

    fn at(&self, _: u64) {}

    fn end(&self) {}

    fn note(&self, text: &str) {
        eprintln!("{text}");
    }
}

fn unknown(catalogue: &Catalogue, name: &str) -> Failure {
    let known: Vec<String> = catalogue.assets.iter().map(describe).collect();
    Failure::Usage(format!(
        "there is no asset `{name}`; the known ones are:\n{}",
        known.join("\n")
    ))
}

/// A line for people: name, size, content and licence.
#[must_use]
pub fn describe(asset: &Asset) -> String {
    format!(
        "  {:<22} {:>9}  {} [{}]",
        asset.name,
        megabytes(asset.bytes()),
        asset.what,
        asset.licence
    )
}

/// A path as one would type it from the workspace's root.
fn shown(path: &Path) -> String {
    path.strip_prefix(workspace::root())
        .unwrap_or(path)
        .display()
        .to_string()
}
