//! `cargo xtask compare`: Akunu and llama.cpp on the same files and cores, one after the other.
//!
//! Each round measures ours, then the peer, in fresh processes; medians over the rounds are compared.
//! The peer is llama.cpp through llama-cpp-python, in a virtual environment of its own.

mod chart;
mod files;
mod ours;
mod peer;
mod summary;

use crate::failure::Failure;
use crate::workspace;
use ours::Ours;
use peer::Peer;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use summary::{Comparison, Summary};

/// Arguments of `cargo xtask compare`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Which files, separated by commas: q4_1, q4_0, q8_0, f16 (SmolLM2), gemma
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    models: Vec<String>,
    /// Numbers of threads, separated by commas
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,2")]
    threads: Vec<usize>,
    /// Rounds; the medians count
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// A virtual environment that has the peer, instead of target/peer
    #[arg(long, value_name = "FOLDER")]
    peer: Option<PathBuf>,
    /// Few tokens: to try the command, not to measure
    #[arg(long)]
    quick: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Where performance.json and performance.svg go
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
}

/// How many tokens each test has.
#[derive(Clone, Copy, Debug, Serialize)]
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
    let sizes = if args.quick { QUICK } else { FULL };
    let chosen = files::choose(&args.models)?;
    let ours = Ours::build(sizes)?;
    let peer = Peer::open(args.peer.as_deref(), sizes)?;
    let files = files::make(&chosen, &ours)?;
    let mut comparisons = Vec::new();
    for &threads in &args.threads {
        let bandwidth = ours.bandwidth(&files[0].path, threads)?;
        for file in &files {
            eprintln!("{}, threads: {threads}", file.name);
            let mut comparison = Comparison::new(file.name, threads);
            measure(&mut comparison, &file.path, args.rounds, (&ours, &peer))?;
            let bytes = ours.weight_bytes(&file.path)?;
            comparison.floor = bandwidth / bytes as f64;
            comparisons.push(comparison);
        }
    }
    let summary = Summary { sizes, comparisons };
    let json = serde_json::to_string_pretty(&summary).map_err(akunu_fetch::FetchError::from)?;
    let folder = args
        .into
        .clone()
        .unwrap_or_else(|| workspace::root().join("docs"));
    write(&folder.join("performance.json"), &format!("{json}\n"))?;
    write(&folder.join("performance.svg"), &chart::draw(&summary))?;
    match args.json {
        true => println!("{json}"),
        false => print!("{}", summary.table()),
    }
    Ok(())
}

/// The rounds: ours, then the peer.
fn measure(
    comparison: &mut Comparison,
    path: &Path,
    rounds: u32,
    (ours, peer): (&Ours, &Peer),
) -> Result<(), Failure> {
    let (prompt, our_ids) = ours.continue_prompt(path, comparison.threads)?;
    for round in 1..=rounds {
        comparison
            .ours
            .push(ours.measure(path, comparison.threads)?);
        let (measured, ids) = peer.measure(path, comparison.threads, &prompt)?;
        comparison.peer.push(measured);
        let same = ids.iter().zip(&our_ids).take_while(|(a, b)| a == b).count();
        comparison.same_first_tokens = same;
        if same == 0 {
            return Err(Failure::Found(format!(
                "{}: the first token differs, ours {our_ids:?}, the peer's {ids:?}",
                comparison.model
            )));
        }
        eprintln!("  round {round} of {rounds}");
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|source| Failure::io(folder, source))?;
    }
    std::fs::write(path, text).map_err(|source| Failure::io(path, source))
}
