//! `inspect FILE`: what a model is and what it needs, without loading it.

mod attention;
mod folder;
mod gguf;
mod report;
mod speech;
mod text;
mod tower;

use super::Run;
use crate::failure::Failure;
use crate::models;
use akunu_gguf::{SpeechFolder, WeightStore};
use akunu_kernels::ChipConfig;
use clap::Parser;
use report::{Floor, Report};
use std::io::Write;
use std::path::Path;

/// Show what a model is: architecture, quantisation, memory, tokenizer
#[derive(Parser)]
#[command(name = "inspect")]
pub struct Inspect {
    /// A GGUF file (any part of a split one), a folder with config.json and safetensors or with a Whisper, or a
    /// name of `pull --list`
    file: String,
    /// List every tensor
    #[arg(long)]
    tensors: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Length of the context that memory is computed for [default: what the model was trained for]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    ctx: Option<u32>,
    /// Also say how fast a chip could decode at best, for example "Apple M2 Pro"
    #[arg(long, value_name = "NAME", value_parser = chip)]
    chip: Option<ChipConfig>,
}

/// A chip by its name; the error lists all.
fn chip(name: &str) -> Result<ChipConfig, String> {
    ChipConfig::by_name(name).ok_or_else(|| {
        let names: Vec<String> = ChipConfig::all().map(|chip| chip.name).collect();
        format!("the known chips are {}", names.join(", "))
    })
}

/// A model's architecture, and the type that most of its weights have.
pub fn kind(path: &Path) -> Option<(String, Option<&'static str>)> {
    if SpeechFolder::is_at(path) {
        return Some(("whisper".to_string(), None));
    }
    let report = Report::new(&WeightStore::open(path).ok()?, None).ok()?;
    let most = report.weights.types.first().map(|share| share.dtype);
    Some((report.description.architecture?, most))
}

impl Run for Inspect {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let path = models::resolve(&self.file)?;
        if SpeechFolder::is_at(&path) {
            return speech::write(&path, self.json, out);
        }
        let store = WeightStore::open(path)?;
        let mut report = Report::new(&store, self.ctx)?;
        report.floor = self.chip.as_ref().map(|chip| Floor::of(&store, chip));
        if self.tensors {
            report.list_tensors(&store);
        }
        if self.json {
            serde_json::to_writer_pretty(&mut *out, &report)?;
            writeln!(out)?;
        } else {
            text::write(&report, out)?;
        }
        Ok(())
    }
}
