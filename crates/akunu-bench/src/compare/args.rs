//! The command line of `cargo measure compare`.

use super::device::Device;
use super::isa::Isa;
use crate::random_model::{Mix, Shape};
use akunu_repo::{Failure, workspace};
use std::path::PathBuf;

/// Arguments of `cargo measure compare`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Where both programs run: cpu, or cuda or cuda:N for an NVIDIA GPU
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    pub device: Device,
    /// Which files, separated by commas: q4_1, q4_0, q8_0, f16 (SmolLM2), gemma
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub models: Vec<String>,
    /// Numbers of threads, separated by commas [default: 1,2]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub threads: Vec<usize>,
    /// Models of these shapes with random weights: to measure scaling on a CPU instead of the files; on a GPU
    /// [default: all]
    #[arg(
        long,
        value_name = "SHAPE,…",
        value_delimiter = ',',
        ignore_case = true
    )]
    #[arg(value_enum, conflicts_with = "models")]
    pub shapes: Vec<Shape>,
    /// The types of those models [default: Q4_0]
    #[arg(long, value_name = "TYPE,…", value_delimiter = ',', ignore_case = true)]
    #[arg(value_enum)]
    pub types: Vec<Mix>,
    /// Instruction sets that both programs keep to, with --shapes [default: all that the processor has]
    #[arg(
        long,
        value_name = "LEVEL,…",
        value_delimiter = ',',
        value_enum,
        requires = "shapes"
    )]
    pub isa: Vec<Isa>,
    /// Rounds; the medians count
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// A virtual environment that has the peer, instead of target/peer; on a GPU a folder with llama-bench and
    /// llama-batched-bench, or with the sources of llama.cpp, which are built there
    #[arg(long, value_name = "FOLDER")]
    pub peer: Option<PathBuf>,
    /// An akunu-cli that was built already (for a GPU with the feature cuda), instead of building it
    #[arg(long, value_name = "PROGRAM")]
    pub ours: Option<PathBuf>,
    /// Few tokens: to try the command, not to measure
    #[arg(long)]
    pub quick: bool,
    /// Measure nothing: print what was measured, and write chart and table from it again
    #[arg(long, conflicts_with_all = ["models", "shapes", "quick"])]
    pub table: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
    /// Where figures and chart go, performance, scaling or nvidia.json and .svg, instead of docs
    /// [of --quick: target/compare/quick]
    #[arg(long, value_name = "FOLDER")]
    pub into: Option<PathBuf>,
}

impl Args {
    /// Where the record lies.
    pub fn folder(&self) -> PathBuf {
        let usual = match self.quick {
            true => "target/compare/quick",
            false => "docs",
        };
        let usual = || workspace::root().join(usual);
        self.into.clone().unwrap_or_else(usual)
    }

    /// Numbers of threads.
    pub fn threads(&self) -> &[usize] {
        match self.threads.is_empty() {
            true => &[1, 2],
            false => &self.threads,
        }
    }

    /// The types of models with random weights.
    pub fn types(&self) -> &[Mix] {
        match self.types.is_empty() {
            true => &[Mix::Q4_0],
            false => &self.types,
        }
    }

    /// Refuses what the device has no use for.
    pub fn check(&self) -> Result<(), Failure> {
        let is_cpu = self.device == Device::Cpu;
        let of_cpu = !(self.models.is_empty() && self.threads.is_empty() && self.isa.is_empty());
        if !is_cpu && of_cpu {
            return Err(Failure::Usage(
                "--models, --threads and --isa are for --device cpu; on a GPU --shapes and --types choose".into(),
            ));
        }
        if is_cpu && self.shapes.is_empty() && !self.types.is_empty() {
            return Err(Failure::Usage(
                "--types needs --shapes: the types of the files are in their names".into(),
            ));
        }
        Ok(())
    }
}
