//! `imatrix`: how large the inputs of each matrix are, for a better `quantize`.
//!
//! A text runs through the model, chunk by chunk as for `perplexity`. For each matrix of the layers the
//! squares of its inputs are added up, column by column. An error in a column with large inputs changes
//! the output most, and `quantize --imatrix` avoids that one first.

use super::Run;
use crate::chunks::chunks;
use crate::failure::Failure;
use crate::input::{self, read_text};
use crate::interrupt::Interrupt;
use crate::progress::{self, Counts};
use crate::running::ModelArgs;
use akunu::{Session, SessionOptions};
use akunu_gguf::{GgufFile, ImportanceMatrix, WholeFile, canonical_from_gguf};
use clap::Parser;
use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;

/// The context of chunks when none is given.
const DEFAULT_CONTEXT: u32 = 512;
/// The smallest: a single token has no input in memory.
const MIN_CONTEXT: u32 = 2;

/// Measure which columns of a model's matrices matter most, for `quantize --imatrix`
///
/// The file has llama.cpp's format, so llama-quantize reads it too. Use the F32, F16 or BF16 model that is to be
/// quantised, and a text like those that the model will be used for; some 100,000 tokens are plenty.
#[derive(Parser)]
#[command(
    name = "imatrix",
    mut_arg("ctx", |ctx| ctx.help("Tokens of a chunk [default: 512]"))
)]
pub struct Imatrix {
    #[command(flatten)]
    model: ModelArgs,
    /// The text
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// The file to write
    #[arg(short, long, value_name = "OUT", default_value = "imatrix.gguf")]
    output: PathBuf,
    /// Maximum number of chunks to read
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    chunks: Option<u32>,
    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,
}

impl Run for Imatrix {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        if !self.force && self.output.symlink_metadata().is_ok() {
            return Err(Failure::Exists(self.output));
        }
        WholeFile::check(&self.output).map_err(|source| Failure::Write {
            path: self.output.clone(),
            source,
        })?;
        let text = read_text(&self.file, input::CORPUS)?;
        let context = self.model.ctx.unwrap_or(DEFAULT_CONTEXT);
        if context < MIN_CONTEXT {
            return Err(Failure::TooSmallToObserve(context));
        }
        let loaded = self.model.load()?;
        let path = loaded.model.path();
        if path.is_dir() {
            return Err(Failure::IsFolder(path.to_path_buf()));
        }
        let names = gguf_names(&GgufFile::open(path)?);
        let mut chunks = chunks(loaded.model.tokenizer(), &text, context)?;
        chunks.truncate(self.chunks.map_or(usize::MAX, |n| n as usize));
        let mut session = loaded.model.session(SessionOptions {
            context: Some(context),
            ..SessionOptions::default()
        })?;
        let mut matrix = ImportanceMatrix::new(&self.file.display().to_string(), context);
        observe(&mut session, &chunks, &names, &mut matrix)?;
        matrix.write(&self.output)?;
        writeln!(
            out,
            "{}: {} matrices, {} chunks of {context} tokens",
            self.output.display(),
            matrix.names().len(),
            chunks.len()
        )?;
        Ok(())
    }
}

/// The names of a file's tensors by their canonical names.
fn gguf_names(file: &GgufFile) -> HashMap<String, String> {
    let tensors = file.tensors().iter();
    tensors
        .filter_map(|tensor| Some((canonical_from_gguf(&tensor.name)?, tensor.name.clone())))
        .collect()
}

fn observe(
    session: &mut Session,
    chunks: &[Vec<u32>],
    names: &HashMap<String, String>,
    matrix: &mut ImportanceMatrix,
) -> Result<(), Failure> {
    let interrupt = Interrupt::listen();
    let bar = progress::bar(chunks.len() as u64, Counts::Things("chunks"));
    for chunk in chunks {
        interrupt.check()?;
        session.observe(chunk, &mut |seen| {
            let Some(name) = names.get(seen.weight) else {
                return;
            };
            match seen.experts {
                None => matrix.add(name, seen.cols, seen.rows),
                Some(chosen) => {
                    matrix.add_stack(name, [chosen.count, seen.cols], seen.rows, chosen.ids);
                }
            }
        })?;
        matrix.end_chunk();
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(())
}
