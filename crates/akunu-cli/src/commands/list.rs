//! `list`: the models in the cache.

use super::Run;
use super::inspect::kind;
use crate::failure::Failure;
use crate::models;
use akunu_fetch::{Stored, megabytes};
use clap::Parser;
use serde::Serialize;
use std::io::Write;

/// List the models in the cache: name, size, type and path
///
/// -m and `rm` take these names. An interrupted download is listed too: `pull` continues it, `rm` removes it.
#[derive(Parser)]
#[command(name = "list")]
pub struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A row of the list, and an object of the JSON.
#[derive(Serialize)]
struct Row {
    name: String,
    bytes: u64,
    /// The architecture, where the model can be read.
    architecture: Option<String>,
    /// The type that most of the weights have; not known of a Whisper.
    #[serde(rename = "type")]
    dtype: Option<&'static str>,
    path: String,
    complete: bool,
}

impl Run for List {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let rows: Vec<Row> = models::stored()?.iter().map(Row::new).collect();
        if self.json {
            serde_json::to_writer_pretty(&mut *out, &rows)?;
            return Ok(writeln!(out)?);
        }
        if rows.is_empty() {
            writeln!(
                out,
                "there are no models yet; `akunu-cli pull --list` has names"
            )?;
        }
        let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
        for row in &rows {
            let (size, kind) = (megabytes(row.bytes), row.kind());
            writeln!(
                out,
                "{:<width$}  {size:>10}  {kind:<12}  {}",
                row.name, row.path
            )?;
        }
        Ok(())
    }
}

impl Row {
    fn new(model: &Stored) -> Row {
        // A list does not fail because of one file.
        let known = model.is_complete.then(|| kind(&model.path)).flatten();
        let (architecture, dtype) = known.unzip();
        Row {
            name: model.name.clone(),
            bytes: model.bytes,
            architecture,
            dtype: dtype.flatten(),
            path: model.path.display().to_string(),
            complete: model.is_complete,
        }
    }

    /// `llama q4_1`, or what is known instead.
    fn kind(&self) -> String {
        if !self.complete {
            return "not complete".to_string();
        }
        match (&self.architecture, self.dtype) {
            (Some(architecture), Some(dtype)) => format!("{architecture} {dtype}"),
            (Some(architecture), None) => architecture.clone(),
            _ => "unknown".to_string(),
        }
    }
}
