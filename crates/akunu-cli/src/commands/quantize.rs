//! `quantize IN OUT TYPE`: the same model with its matrices in other types.

mod choice;
mod facts;
mod importances;
mod recipe;

use super::Run;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::models;
use crate::progress::{self, Counts};
use crate::terminal::warn;
use crate::units::bytes;
use akunu_gguf::quant::{Importance, Source, convert, supported};
use akunu_gguf::{GgufFile, GgufHeader, GgufWriter, TensorInfo};
use akunu_types::DType;
use choice::{Choice, Wish, choose, is_float};
use clap::Parser;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser;
use facts::Facts;
use importances::Importances;
use indicatif::ProgressBar;
use recipe::Recipe;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Values converted between two looks at Ctrl-C and two steps of the progress bar; whole blocks of
/// every type.
const SLICE: usize = 1 << 20;

/// Write a GGUF model with its matrices in other types
///
/// TYPE means the same as in llama.cpp. Most matrices get the type that TYPE begins with; the output
/// matrix, or the token embedding where it is the same, gets q6_k or q8_0; and the names that end in _S, _M
/// or _L give some matrices of some layers more bits. Rows must be a multiple of 32 values, or of 256 for the K types.
/// Where a type does not fit, the nearest larger one is taken: q4_0 for q2_k and q3_k, q5_0 for q4_k, q5_1 for
/// q5_k, q8_0 for q6_k, and f16 where nothing else fits. Vectors become f32. Tables that are read value by
/// value, such as position embeddings, stay as they are.
#[derive(Parser)]
#[command(name = "quantize")]
pub struct Quantize {
    /// The model to read: a GGUF file (any part of a split one), a name from `pull --list`, or
    /// hf:owner/repository/file.gguf
    #[arg(value_name = "IN")]
    input: String,
    /// The GGUF file to write
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// The type to write; Q4_K_M is a good choice for most models
    #[arg(value_name = "TYPE", value_parser = recipe_parser(), ignore_case = true)]
    recipe: Recipe,
    /// How much each column matters: a file of `akunu-cli imatrix` or llama.cpp, GGUF or .dat
    #[arg(long, value_name = "FILE")]
    imatrix: Option<PathBuf>,
    /// The type of the output matrix, and of the token embedding where that is the same
    #[arg(long, value_name = "DTYPE", value_parser = dtype_parser(), ignore_case = true)]
    output_type: Option<DType>,
    /// The type of the token embedding
    #[arg(long, value_name = "DTYPE", value_parser = dtype_parser(), ignore_case = true)]
    embedding_type: Option<DType>,
    /// All matrices in the type that TYPE begins with, the embedding and the output matrix too
    #[arg(long)]
    pure: bool,
    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

fn recipe_parser() -> impl TypedValueParser<Value = Recipe> {
    let names = PossibleValuesParser::new(Recipe::names());
    names.try_map(|name| Recipe::from_name(&name).ok_or("not a type"))
}

fn dtype_parser() -> impl TypedValueParser<Value = DType> {
    let names = PossibleValuesParser::new(supported().map(DType::name));
    names.try_map(|name| DType::from_name(&name).ok_or("not a type"))
}

impl Run for Quantize {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let input = models::resolve(&self.input)?;
        if input.is_dir() {
            return Err(Failure::IsFolder(input));
        }
        let file = GgufFile::open(&input)?;
        self.check_output(&file)?;
        let importances = self.imatrix.as_deref().map(Importances::read).transpose()?;
        let plan = self.plan(&file, importances.as_ref())?;
        self.warn(&file, &plan);
        let interrupt = Interrupt::listen();
        let mut job = Job {
            writer: plan.header.create(&self.output)?,
            progress: progress_bar(&file),
            interrupt,
            threads: self.threads.unwrap_or_else(all_cores),
            importances,
        };
        for (tensor, choice) in file.tensors().iter().zip(&plan.choices) {
            job.convert_tensor(&file, tensor, choice.dtype)?;
        }
        job.interrupt.check()?;
        job.writer.finish()?;
        job.progress.finish_and_clear();
        self.summary(&file, &plan, out)
    }
}

/// What will be written.
struct Plan {
    header: GgufHeader,
    /// The type of each tensor, in the order of the file.
    choices: Vec<Choice>,
}

impl Quantize {
    fn check_output(&self, file: &GgufFile) -> Result<(), Failure> {
        let inputs = file.parts().iter().map(|part| part.path());
        for input in inputs.chain(self.imatrix.as_deref()) {
            if is_same_file(input, &self.output) {
                return Err(Failure::OutputIsInput(self.output.clone()));
            }
        }
        // A link to nowhere exists too: it would be followed.
        if !self.force && self.output.symlink_metadata().is_ok() {
            return Err(Failure::Exists(self.output.clone()));
        }
        Ok(())
    }

    fn plan(&self, file: &GgufFile, importances: Option<&Importances>) -> Result<Plan, Failure> {
        if self.recipe == Recipe::Q2KSmall && importances.is_none() {
            return Err(Failure::NeedsImportance(&self.recipe.row().name));
        }
        let wish = Wish {
            recipe: self.recipe,
            output: self.output_type,
            embedding: self.embedding_type,
            pure: self.pure,
            has_importance: importances.is_some(),
        };
        let choices = choose(file.tensors(), Facts::of(file), wish);
        let mut header = GgufHeader::new();
        header.copy_metadata(file.metadata());
        header.set("general.file_type", &self.recipe.row().file_type);
        header.set("general.quantization_version", &2_u32);
        if let Some(importances) = importances {
            importances.describe(&mut header);
        }
        for (tensor, choice) in file.tensors().iter().zip(&choices) {
            let dims: Vec<u64> = tensor.dims.as_slice().iter().map(|&n| n as u64).collect();
            header.tensor(&tensor.name, &dims, choice.dtype);
        }
        Ok(Plan { header, choices })
    }

    /// Says on stderr when the input has lost what cannot come back.
    fn warn(&self, file: &GgufFile, plan: &Plan) {
        let mut lossy = file.tensors().iter().zip(&plan.choices);
        let again = lossy.find(|(tensor, choice)| {
            !is_float(tensor.dtype) && tensor.dtype != choice.dtype && !is_float(choice.dtype)
        });
        if let Some((tensor, _)) = again {
            warn(&format!(
                "{} is quantised already ({} is {}): a file made from the F32, F16 or BF16 original \
                 would be better",
                self.input, tensor.name, tensor.dtype
            ));
        }
    }

    fn summary(&self, file: &GgufFile, plan: &Plan, out: &mut dyn Write) -> Result<(), Failure> {
        let before: u64 = file.parts().iter().map(|part| part.len() as u64).sum();
        let after = self.output.metadata()?.len();
        let (before, after) = (bytes(before), bytes(after));
        writeln!(out, "{}: {after}, from {before}", self.output.display())?;
        let is_larger = |choice: &&Choice| choice.dtype != choice.wanted;
        let n_larger = plan.choices.iter().filter(is_larger).count();
        if n_larger > 0 {
            writeln!(
                out,
                "{n_larger} of {} tensors have rows of a length that their type does not fit, and got a larger one",
                plan.choices.len()
            )?;
        }
        Ok(())
    }
}

/// A file that is being written.
struct Job {
    writer: GgufWriter,
    progress: ProgressBar,
    interrupt: Interrupt,
    threads: NonZeroUsize,
    importances: Option<Importances>,
}

impl Job {
    fn convert_tensor(
        &mut self,
        file: &GgufFile,
        tensor: &TensorInfo,
        dtype: DType,
    ) -> Result<(), Failure> {
        let Some(view) = file.view(tensor) else {
            unreachable!("the tensor is one of the file's own");
        };
        self.progress.set_message(tensor.name.clone());
        let from = tensor.dtype;
        if from == dtype {
            self.writer.write(&tensor.name, view.bytes)?;
            self.progress.inc(tensor.dims.n_elements() as u64);
            return self.interrupt.check();
        }
        let importances = self.importances.as_ref();
        let importance = importances.and_then(|all| all.of(&tensor.name));
        let importance = match importance {
            Some(values) if !is_float(dtype) => Some(for_tensor(tensor, values)?),
            _ => None,
        };
        let slice_bytes = SLICE / from.block_len() * from.block_bytes();
        for (i, bytes) in view.bytes.chunks(slice_bytes).enumerate() {
            self.interrupt.check()?;
            let n = bytes.len() / from.block_bytes() * from.block_len();
            let source = Source {
                dtype: from,
                bytes,
                first: i * SLICE,
                importance,
            };
            let converted = convert(source, n, dtype, self.threads);
            let converted = converted.map_err(|problem| failure(tensor, problem))?;
            self.writer.write(&tensor.name, &converted)?;
            self.progress.inc(n as u64);
        }
        Ok(())
    }
}

/// A tensor's importances; one of several matrices has a set for each.
fn for_tensor<'a>(tensor: &TensorInfo, values: &'a [f32]) -> Result<Importance<'a>, Failure> {
    let dims = tensor.dims.as_slice();
    let rows = dims.get(1).copied().unwrap_or(1);
    let n = dims.iter().skip(2).product();
    Importance::new(values, [n, rows, tensor.dims.cols()])
        .map_err(|problem| failure(tensor, problem))
}

fn failure(tensor: &TensorInfo, problem: akunu_gguf::quant::QuantError) -> Failure {
    Failure::Tensor {
        tensor: tensor.name.clone(),
        problem,
    }
}

/// Whether both paths lead to one file.
fn is_same_file(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

fn all_cores() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// A bar over all weights.
fn progress_bar(file: &GgufFile) -> ProgressBar {
    let sizes = file.tensors().iter().map(|t| t.dims.n_elements() as u64);
    progress::bar(sizes.sum(), Counts::Share)
}
