//! `pull MODEL`: fetches a model, so that it is there when it is wanted.

use super::Run;
use crate::failure::Failure;
use crate::models;
use akunu_fetch::{Catalogue, FetchError, ModelEntry, megabytes};
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
    /// List the models that have a name, with size, licence and what to expect
    #[arg(long)]
    list: bool,
    /// Print the list as JSON
    #[arg(long, requires = "list")]
    json: bool,
}

impl Run for Pull {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        match self.model.filter(|_| !self.list) {
            None => list(self.json, out),
            Some(name) => Ok(writeln!(out, "{}", models::fetch(&name)?.display())?),
        }
    }
}

fn list(json: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let catalogue = Catalogue::embedded().map_err(FetchError::from)?;
    let models: Vec<ModelEntry<'_>> = catalogue.models().collect();
    if json {
        serde_json::to_writer_pretty(&mut *out, &models)?;
        return Ok(writeln!(out)?);
    }
    let width = models.iter().map(|model| model.name.len()).max();
    for model in &models {
        writeln!(
            out,
            "{:<width$} {:>15}  {} [{}]",
            model.name,
            size(model),
            model.what,
            model.licence,
            width = width.unwrap_or(0),
        )?;
    }
    Ok(())
}

/// `98.4 MB`, or `about 2500 MB` of a model whose exact size only a hub knows.
fn size(model: &ModelEntry<'_>) -> String {
    match model.is_rounded {
        true => format!("about {} MB", model.bytes / 1_000_000),
        false => megabytes(model.bytes),
    }
}
