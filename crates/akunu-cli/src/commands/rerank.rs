//! `rerank QUERY`: documents in the order in which they answer a question.

use super::Run;
use super::embed::warn_of_cuts;
use crate::device::DeviceArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::lines;
use crate::models;
use crate::progress::{self, Counts};
use crate::terminal::shown;
use akunu::{Ranking, Reranker};
use clap::Parser;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Documents that are computed between two looks at Ctrl-C and two steps of the progress bar.
const BATCH: usize = 64;

/// Sort documents by how well they answer a question, with a cross-encoder
///
/// Each line of --file or of standard input is a document. The output has a line for each, the best first: its score, a tab,
/// and its text; with --json, an object {"index", "score", "text"}.
#[derive(Parser)]
#[command(name = "rerank")]
pub struct Rerank {
    /// The question
    #[arg(value_name = "QUERY")]
    query: String,
    /// A file with a document in each line; - for standard input
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// A folder with config.json and safetensors, or a GGUF file: a BERT or ModernBERT with one score
    #[arg(short, long, value_name = "MODEL")]
    model: String,
    #[command(flatten)]
    device: DeviceArgs,
    /// Threads of the CPU device, at most one for each core [default: one for each core]
    #[arg(short, long, value_name = "N")]
    threads: Option<usize>,
    /// Print only the best N
    #[arg(short = 'n', long, value_name = "N")]
    top: Option<usize>,
    /// Fail on a document that is longer than the model can read, instead of cutting it
    #[arg(long)]
    strict: bool,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

impl Run for Rerank {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let documents = lines::read(self.file.as_deref())?;
        let path = models::resolve(&self.model)?;
        models::refuse_speech(&path, "scores documents")?;
        let device = self.device.open(self.threads)?;
        let reranker = Reranker::open_on(path, akunu::Device::Custom(device))?;
        let rankings = self.rank(&reranker, &documents)?;
        let mut order: Vec<usize> = (0..documents.len()).collect();
        order.sort_by(|&a, &b| rankings[b].score.total_cmp(&rankings[a].score));
        for at in order.into_iter().take(self.top.unwrap_or(usize::MAX)) {
            let (score, text) = (rankings[at].score, &documents[at]);
            if self.json {
                let line = json!({"index": at, "score": score, "text": text});
                writeln!(out, "{line}")?;
            } else {
                writeln!(out, "{score:.4}\t{}", shown(text))?;
            }
        }
        let n_cut = rankings.iter().filter(|ranking| ranking.n_cut > 0).count();
        warn_of_cuts(n_cut, reranker.max_tokens());
        Ok(())
    }
}

impl Rerank {
    fn rank(&self, reranker: &Reranker, documents: &[String]) -> Result<Vec<Ranking>, Failure> {
        let interrupt = Interrupt::listen();
        let bar = progress::bar(documents.len() as u64, Counts::Things("documents"));
        let mut rankings = Vec::with_capacity(documents.len());
        for batch in documents.chunks(BATCH) {
            interrupt.check()?;
            let ranked = reranker.rank(&self.query, batch, self.strict);
            let first = rankings.len();
            rankings.extend(ranked.map_err(|error| lines::of_batch(error, first))?);
            bar.set_position(rankings.len() as u64);
        }
        bar.finish_and_clear();
        Ok(rankings)
    }
}
