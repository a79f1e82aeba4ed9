//! `list`: the models in the cache.

use super::Run;
use crate::failure::Failure;
use crate::models;
use akunu_fetch::{Stored, megabytes};
use akunu_gguf::GgufFile;
use clap::Parser;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

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
    /// The architecture, where the file is a GGUF file that can be read.
    architecture: Option<String>,
    /// The type that most of the weights have.
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
        let described = model.is_complete.then(|| describe(&model.path));
        let (architecture, dtype) = described.unwrap_or_default();
        Row {
            name: model.name.clone(),
            bytes: model.bytes,
            architecture,
            dtype,
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
            _ => "unknown".to_string(),
        }
    }
}

/// A file's architecture and the type of most of its weights. A list does not fail because of one file.
fn describe(path: &Path) -> (Option<String>, Option<&'static str>) {
    let Ok(file) = GgufFile::open(path) else {
        return (None, None);
    };
    let architecture = file.metadata().string("general.architecture");
    let architecture = architecture.ok().flatten().map(str::to_string);
    let mut bytes_of_types = BTreeMap::new();
    for tensor in file.tensors() {
        let bytes = tensor.dtype.bytes_of(tensor.dims.n_elements());
        *bytes_of_types.entry(tensor.dtype.name()).or_insert(0) += bytes.unwrap_or(0);
    }
    let most = bytes_of_types.into_iter().max_by_key(|(_, bytes)| *bytes);
    (architecture, most.map(|(dtype, _)| dtype))
}
