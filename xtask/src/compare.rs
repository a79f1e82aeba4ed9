//! `cargo xtask compare`: Akunu and llama.cpp on the same files and device, one after the other.
//!
//! Each round measures ours, then the peer, in fresh processes; medians over the rounds are compared.
//! The peer is llama.cpp through llama-cpp-python, in a virtual environment of its own. The figures are
//! kept for each file and number of threads, so that some of them can be measured again. With
//! `--shapes` it measures how speed grows with threads and instructions instead: see [`scaling`]. With
//! `--device cuda` both run on an NVIDIA GPU: see [`gpu`].

mod bar;
mod chart;
mod device;
mod files;
mod gpu;
mod lines;
mod ours;
mod peer;
mod record;
mod scaling;
mod summary;

use crate::failure::Failure;
use crate::process;
use crate::random_model::{Mix, Shape};
use crate::workspace;
use device::Device;
use files::ModelFile;
use ours::Ours;
use peer::{Isa, Peer, Question};
use record::Record;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::Command;
use summary::{Comparison, Row};

/// Arguments of `cargo xtask compare`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Where both programs run: cpu, or cuda or cuda:N for an NVIDIA GPU
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: Device,
    /// Which files, separated by commas: q4_1, q4_0, q8_0, f16 (SmolLM2), gemma
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    models: Vec<String>,
    /// Numbers of threads, separated by commas [default: 1,2]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    threads: Vec<usize>,
    /// Models of these shapes with random weights: to measure scaling on a CPU instead of the files; on a GPU
    /// [default: all]
    #[arg(
        long,
        value_name = "SHAPE,…",
        value_delimiter = ',',
        ignore_case = true
    )]
    #[arg(value_enum, conflicts_with = "models")]
    shapes: Vec<Shape>,
    /// The types of those models [default: Q4_0]
    #[arg(long, value_name = "TYPE,…", value_delimiter = ',', ignore_case = true)]
    #[arg(value_enum)]
    types: Vec<Mix>,
    /// Instruction sets that both programs keep to, with --shapes [default: all that the processor has]
    #[arg(
        long,
        value_name = "LEVEL,…",
        value_delimiter = ',',
        value_enum,
        requires = "shapes"
    )]
    isa: Vec<Isa>,
    /// Rounds; the medians count
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// A virtual environment that has the peer, instead of target/peer; on a GPU a folder with llama-bench and
    /// llama-batched-bench, or with the sources of llama.cpp, which are built there
    #[arg(long, value_name = "FOLDER")]
    peer: Option<PathBuf>,
    /// An akunu-cli that was built already (for a GPU with the feature cuda), instead of building it
    #[arg(long, value_name = "PROGRAM")]
    ours: Option<PathBuf>,
    /// Few tokens: to try the command, not to measure
    #[arg(long)]
    quick: bool,
    /// Measure nothing: print what was measured, and write chart and table from it again
    #[arg(long, conflicts_with_all = ["models", "shapes", "quick"])]
    table: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Where figures and chart go, performance, scaling or nvidia.json and .svg, instead of docs
    /// [of --quick: target/compare/quick]
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
}

/// How many tokens each test has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// The prompt.
    pub prefill: u32,
    /// The short prompt whose answer's first token is waited for.
    pub first: u32,
    /// Tokens written.
    pub decode: u32,
    /// A short context and a long one.
    pub shallow: u32,
    /// The long one.
    pub deep: u32,
    /// Tokens written after them.
    pub deep_decode: u32,
}

const FULL: Sizes = Sizes {
    prefill: 512,
    first: 20,
    decode: 128,
    shallow: 100,
    deep: 4000,
    deep_decode: 32,
};

const QUICK: Sizes = Sizes {
    prefill: 16,
    first: 4,
    decode: 4,
    shallow: 8,
    deep: 64,
    deep_decode: 2,
};

/// What both programs continue, to see that they compute the same.
const PROMPT: &str = "The capital of France is";
const N_GREEDY: u32 = 8;

/// What one round of one program gave.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Tokens a second of the prompt.
    pub prefill: f64,
    /// From a short prompt to the first token.
    pub first_token_ms: f64,
    /// Tokens a second, written.
    pub decode: f64,
    /// From the start to a session that can be asked.
    pub load_ms: f64,
    /// Memory of the process.
    pub resident_bytes: f64,
    /// Tokens a second after a short context.
    pub decode_shallow: f64,
    /// And after a long one.
    pub decode_deep: f64,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.check()?;
    let folder = args.folder();
    match args.device {
        Device::Cpu if args.table => {
            let records = Record::read_all(&folder)?;
            records.iter().try_for_each(|record| show(record, args))
        }
        Device::Cpu if args.shapes.is_empty() => show(&measure_all(args)?, args),
        Device::Cpu => show(&scaling::measure_all(args)?, args),
        Device::Cuda(_) if args.table => show(&Record::read(folder, &gpu::NVIDIA)?, args),
        Device::Cuda(number) => show(&gpu::measure_all(args, number)?, args),
    }
}

/// Writes a record's files, and prints it.
fn show<R: Row>(record: &Record<R>, args: &Args) -> Result<(), Failure> {
    record.write()?;
    match args.json {
        true => println!("{}", record.json()?),
        false => print!("{}", record.text()),
    }
    Ok(())
}

impl Args {
    fn folder(&self) -> PathBuf {
        let usual = match self.quick {
            true => "target/compare/quick",
            false => "docs",
        };
        let usual = || workspace::root().join(usual);
        self.into.clone().unwrap_or_else(usual)
    }

    fn threads(&self) -> &[usize] {
        match self.threads.is_empty() {
            true => &[1, 2],
            false => &self.threads,
        }
    }

    fn types(&self) -> &[Mix] {
        match self.types.is_empty() {
            true => &[Mix::Q4_0],
            false => &self.types,
        }
    }

    /// Refuses what the device has no use for.
    fn check(&self) -> Result<(), Failure> {
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

/// Measures each file with each number of threads, and writes down each when it is done.
fn measure_all(args: &Args) -> Result<Record<Comparison>, Failure> {
    let sizes = if args.quick { QUICK } else { FULL };
    let mut record = Record::open(args.folder(), sizes, &record::FILES)?;
    let chosen = files::choose(&args.models)?;
    let ours = Ours::open(args.ours.as_deref(), Device::Cpu)?;
    let peer = Peer::open(args.peer.as_deref(), None, sizes)?;
    let files = files::make(&chosen, &ours)?;
    for &threads in args.threads() {
        let bandwidth = ours.bandwidth(&files[0].path, threads)?;
        for file in &files {
            eprintln!("{}, threads: {threads}", file.name);
            let mut comparison = begin(file, threads, &ours)?;
            comparison.floor = bandwidth / comparison.weight_bytes as f64;
            let programs = Programs {
                ours: &ours,
                peer: &peer,
                sizes,
                must_agree: true,
            };
            measure(&mut comparison, file, args.rounds, &programs)?;
            record.summary.put(comparison);
            record.write()?;
        }
    }
    Ok(record)
}

/// A comparison without rounds.
fn begin(file: &ModelFile, threads: usize, ours: &Ours) -> Result<Comparison, Failure> {
    Ok(Comparison {
        model: file.name.clone(),
        isa: None,
        threads,
        date: today()?,
        weight_bytes: ours.weight_bytes(&file.path)?,
        ours: Vec::new(),
        peer: Vec::new(),
        floor: 0.0,
        same_first_tokens: 0,
    })
}

/// The day, as 2026-11-17.
fn today() -> Result<String, Failure> {
    let date = process::output(Command::new("date").args(["-u", "+%F"]))?;
    Ok(date.trim().into())
}

/// Who is compared.
struct Programs<'a> {
    ours: &'a Ours,
    peer: &'a Peer,
    sizes: Sizes,
    /// Whether both must begin an answer with the same token. With random weights many tokens are about
    /// equally likely, and rounding decides.
    must_agree: bool,
}

/// The rounds: ours, then the peer.
fn measure(
    comparison: &mut Comparison,
    file: &ModelFile,
    rounds: u32,
    programs: &Programs,
) -> Result<(), Failure> {
    let Programs { ours, peer, .. } = programs;
    let (path, threads) = (&file.path, comparison.threads);
    let (prompt, our_ids) = ours.continue_prompt(path, threads)?;
    let folder = files::folder()?;
    let state = tempfile::tempdir_in(&folder).map_err(|source| Failure::io(&folder, source))?;
    let question = Question {
        model: path,
        threads,
        prompt: &prompt,
        state: &state.path().join("state"),
    };
    let mut same = 0;
    let (ours, peer) = alternate(
        rounds,
        || ours.measure(path, threads, programs.sizes),
        || {
            let (measured, ids) = peer.measure(&question)?;
            same = ids.iter().zip(&our_ids).take_while(|(a, b)| a == b).count();
            if same == 0 && programs.must_agree {
                return Err(Failure::Found(format!(
                    "{}: the first token differs, ours {our_ids:?}, the peer's {ids:?}",
                    comparison.model
                )));
            }
            Ok(measured)
        },
    )?;
    (comparison.ours, comparison.peer) = (ours, peer);
    comparison.same_first_tokens = same;
    Ok(())
}

/// What each round of both programs gave: ours, then the peer, in turn.
fn alternate<M>(
    rounds: u32,
    mut ours: impl FnMut() -> Result<M, Failure>,
    mut peer: impl FnMut() -> Result<M, Failure>,
) -> Result<(Vec<M>, Vec<M>), Failure> {
    let mut both = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        both.0.push(ours()?);
        both.1.push(peer()?);
        eprintln!("  round {round} of {rounds}");
    }
    Ok(both)
}
