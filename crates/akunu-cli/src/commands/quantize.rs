//! `quantize IN OUT TYPE`: the same model with its matrices in another type.

mod choice;

use super::Run;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::progress;
use crate::units::bytes;
use akunu_gguf::quant::{convert, supported};
use akunu_gguf::{GgufFile, GgufHeader, GgufWriter, TensorInfo};
use akunu_types::DType;
use choice::{file_type, target_type};
use clap::Parser;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser;
use indicatif::ProgressBar;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Values converted between two looks at Ctrl-C and two steps of the progress bar; whole blocks of
/// every type.
const SLICE: usize = 1 << 20;

/// Write a GGUF model again with its matrices in another type
///
/// Matrices get TYPE where it fits the length of their rows, which must be a multiple of 32, or of 256
/// for the K types. Where it does not fit they get the nearest plain type that is no smaller: q4_0 for
/// q2_k and q3_k, q5_0 for q4_k, q5_1 for q5_k, q8_0 for q6_k, and f16 where nothing else fits. Vectors
/// become f32. Tables that are read value by value, such as position embeddings, stay as they are.
#[derive(Parser)]
#[command(name = "quantize")]
pub struct Quantize {
    /// The GGUF file to read (any part of a split one)
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The GGUF file to write
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// The type of the matrices
    #[arg(value_name = "TYPE", value_parser = dtype_parser(), ignore_case = true)]
    dtype: DType,
    /// Replace OUT when it exists
    #[arg(long)]
    force: bool,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

fn dtype_parser() -> impl TypedValueParser<Value = DType> {
    let names = PossibleValuesParser::new(supported().map(DType::name));
    names.try_map(|name| DType::from_name(&name).ok_or("not a type"))
}

impl Run for Quantize {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        if self.input.is_dir() {
            return Err(Failure::IsFolder(self.input));
        }
        let file = GgufFile::open(&self.input)?;
        self.check_output(&file)?;
        let interrupt = Interrupt::listen();
        let plan = self.plan(&file);
        let mut job = Job {
            writer: plan.header.create(&self.output)?,
            progress: progress_bar(&file),
            interrupt,
            threads: self.threads.unwrap_or_else(all_cores),
        };
        for (tensor, &dtype) in file.tensors().iter().zip(&plan.types) {
            job.convert_tensor(&file, tensor, dtype)?;
        }
        job.interrupt.check()?;
        job.writer.finish()?;
        job.progress.finish_and_clear();
        self.summary(&file, out)
    }
}

/// What will be written.
struct Plan {
    header: GgufHeader,
    /// The type of each tensor, in the order of the file.
    types: Vec<DType>,
}

impl Quantize {
    fn check_output(&self, file: &GgufFile) -> Result<(), Failure> {
        let inputs = file.parts().iter().map(|part| part.path());
        for input in inputs {
            if is_same_file(input, &self.output) {
                return Err(Failure::OutputIsInput(self.output.clone()));
            }
        }
        // A link to nowhere exists too: it would be replaced.
        if !self.force && self.output.symlink_metadata().is_ok() {
            return Err(Failure::Exists(self.output.clone()));
        }
        Ok(())
    }

    fn plan(&self, file: &GgufFile) -> Plan {
        let mut header = GgufHeader::new();
        header.copy_metadata(file.metadata());
        header.set("general.file_type", &file_type(self.dtype));
        header.set("general.quantization_version", &2_u32);
        let mut types = Vec::with_capacity(file.tensors().len());
        for tensor in file.tensors() {
            let dtype = target_type(tensor, self.dtype);
            let dims: Vec<u64> = tensor.dims.as_slice().iter().map(|&n| n as u64).collect();
            header.tensor(&tensor.name, &dims, dtype);
            types.push(dtype);
        }
        Plan { header, types }
    }

    fn summary(&self, file: &GgufFile, out: &mut dyn Write) -> Result<(), Failure> {
        let before: u64 = file.parts().iter().map(|part| part.len() as u64).sum();
        let after = self.output.metadata()?.len();
        let (before, after) = (bytes(before), bytes(after));
        writeln!(out, "{}: {after}, from {before}", self.output.display())?;
        Ok(())
    }
}

/// A file that is being written.
struct Job {
    writer: GgufWriter,
    progress: ProgressBar,
    interrupt: Interrupt,
    threads: NonZeroUsize,
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
        let fail = |problem| Failure::Tensor {
            tensor: tensor.name.clone(),
            problem,
        };
        let slice_bytes = SLICE / from.block_len() * from.block_bytes();
        for slice in view.bytes.chunks(slice_bytes) {
            self.interrupt.check()?;
            let n = slice.len() / from.block_bytes() * from.block_len();
            let converted = convert((from, slice), n, dtype, self.threads).map_err(fail)?;
            self.writer.write(&tensor.name, &converted)?;
            self.progress.inc(n as u64);
        }
        Ok(())
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
    let template = "{bar:40} {percent:>3}%  {eta:>4}  {wide_msg}";
    progress::bar(sizes.sum(), template)
}
