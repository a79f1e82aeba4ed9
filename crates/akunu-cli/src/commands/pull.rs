//! `pull MODEL`: fetches a model, so that it is there when it is wanted.

use super::Run;
use crate::failure::Failure;
use crate::models;
use akunu_fetch::{Catalogue, FetchError, megabytes};
use clap::Parser;
use std::io::Write;

/// Fetch a model into the cache, and print its path
///
/// An interrupted download continues where it stopped. `list` shows the models in the cache, `rm` removes them.
#[derive(Parser)]
#[command(name = "pull")]
pub struct Pull {
    /// A name from --list, or hf:owner/repository/file.gguf
    #[arg(value_name = "MODEL", required_unless_present = "list")]
    model: Option<String>,
    /// List the models that have a name
    #[arg(long)]
    list: bool,
}

impl Run for Pull {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        match self.model.filter(|_| !self.list) {
            None => list(out),
            Some(name) => Ok(writeln!(out, "{}", models::fetch(&name)?.display())?),
        }
    }
}

fn list(out: &mut dyn Write) -> Result<(), Failure> {
    let catalogue = Catalogue::embedded().map_err(FetchError::from)?;
    let names = catalogue.models().map(|asset| asset.name.len());
    let width = names.max().unwrap_or(0);
    for asset in catalogue.models() {
        writeln!(
            out,
            "{:<width$} {:>10}  {} [{}]",
            asset.name,
            megabytes(asset.bytes()),
            asset.what,
            asset.licence
        )?;
    }
    Ok(())
}
