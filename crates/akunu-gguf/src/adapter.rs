//! Low-rank adapters (LoRA), from GGUF files and from folders as PEFT writes them.
//!
//! An adapter changes products of a model: `y = W x + scaling * B (A x)`, with A of (rank, inputs) and B of
//! (outputs, rank). A file names the weight W of each pair; here it has its canonical name. `scaling` is what the file
//! says, alpha / rank in most of them.

mod error;
mod gguf;
mod peft;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use akunu_types::DType;

pub use self::error::AdapterError;

use self::error::AdapterProblem;
use crate::dims::Dims;
use crate::mmap::FileBytes;
use crate::quant;

/// An open adapter.
#[derive(Debug)]
pub struct AdapterFile {
    path: PathBuf,
    architecture: Option<String>,
    parts: Vec<AdapterPart>,
}

/// The change of an adapter to one weight.
#[derive(Debug)]
pub struct AdapterPart {
    /// The weight, by its canonical name.
    pub weight: String,
    /// Outputs of the product.
    pub rows: usize,
    /// Inputs of the product.
    pub cols: usize,
    /// Rows of A, and columns of B.
    pub rank: usize,
    /// What `B (A x)` is multiplied by.
    pub scaling: f32,
    a: Half,
    b: Half,
}

/// One of the two matrices.
#[derive(Debug)]
struct Half {
    /// The file's name for it.
    tensor: String,
    dims: Dims,
    dtype: DType,
    file: Arc<FileBytes>,
    range: Range<usize>,
}

/// The two matrices of a weight, as far as they were found.
#[derive(Default)]
struct Pair {
    a: Option<Half>,
    b: Option<Half>,
}

impl AdapterFile {
    /// Opens a GGUF file, a folder with `adapter_config.json` and `adapter_model.safetensors`, or the safetensors file
    /// of such a folder. The numbers are read later, part by part.
    pub fn open(path: impl AsRef<Path>) -> Result<AdapterFile, AdapterError> {
        let path = path.as_ref();
        let of_path = |problem: AdapterProblem| problem.in_file(path);
        if path.is_dir() {
            return peft::open(path, &path.join(peft::WEIGHTS));
        }
        let file = FileBytes::map(path).map_err(|error| of_path(error.into()))?;
        if file.starts_with(b"GGUF") {
            drop(file);
            return gguf::open(path);
        }
        let folder = path.parent().unwrap_or(Path::new("."));
        if path.extension().is_some_and(|end| end == "safetensors") {
            return peft::open(folder, path);
        }
        Err(of_path(AdapterProblem::Unknown))
    }

    /// The file or folder that was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The architecture that it is for, by GGUF's name. Only GGUF files say so; their rows are in GGUF's order, all
    /// others in the order in which models are trained.
    pub fn architecture(&self) -> Option<&str> {
        self.architecture.as_deref()
    }

    /// The changes to all weights, sorted by name.
    pub fn parts(&self) -> &[AdapterPart] {
        &self.parts
    }

    /// The numbers of both matrices of a part, row after row.
    pub fn read(&self, part: &AdapterPart) -> Result<[Vec<f32>; 2], AdapterError> {
        let read = |half: &Half| half.read().map_err(|problem| problem.in_file(&self.path));
        Ok([read(&part.a)?, read(&part.b)?])
    }

    /// Puts pairs together; `scaling` is asked for each by the tensor's name and its rank.
    fn assemble(
        path: &Path,
        architecture: Option<String>,
        pairs: BTreeMap<String, Pair>,
        scaling: impl Fn(&str, usize) -> Result<f32, AdapterProblem>,
    ) -> Result<AdapterFile, AdapterError> {
        let in_file = |problem: AdapterProblem| problem.in_file(path);
        if pairs.is_empty() {
            return Err(in_file(AdapterProblem::Empty));
        }
        let part = |(weight, pair): (String, Pair)| AdapterPart::of(weight, pair, &scaling);
        let parts: Result<Vec<_>, _> = pairs.into_iter().map(part).collect();
        Ok(AdapterFile {
            path: path.to_path_buf(),
            architecture,
            parts: parts.map_err(in_file)?,
        })
    }
}

impl AdapterPart {
    fn of(
        weight: String,
        pair: Pair,
        scaling: impl Fn(&str, usize) -> Result<f32, AdapterProblem>,
    ) -> Result<AdapterPart, AdapterProblem> {
        let (a, b) = match pair {
            Pair {
                a: Some(a),
                b: Some(b),
            } => (a, b),
            Pair { a, .. } => {
                let missing = if a.is_some() { "B" } else { "A" };
                return Err(AdapterProblem::Half { weight, missing });
            }
        };
        let (rank, of_b) = (a.dims.rows(), b.dims.cols());
        if rank != of_b {
            return Err(AdapterProblem::Ranks {
                weight,
                a: rank,
                b: of_b,
            });
        }
        Ok(AdapterPart {
            rows: b.dims.rows(),
            cols: a.dims.cols(),
            rank,
            scaling: scaling(&a.tensor, rank)?,
            weight,
            a,
            b,
        })
    }
}

impl Half {
    fn read(&self) -> Result<Vec<f32>, AdapterProblem> {
        let mut values = vec![0f32; self.dims.n_elements()];
        let bytes = &self.file[self.range.clone()];
        let read = quant::dequantise(self.dtype, bytes, &mut values);
        read.map_err(|error| AdapterProblem::Numbers {
            tensor: self.tensor.clone(),
            why: error.to_string(),
        })?;
        match values.iter().find(|value| !value.is_finite()) {
            None => Ok(values),
            Some(value) => Err(AdapterProblem::Numbers {
                tensor: self.tensor.clone(),
                why: format!("one of its numbers is {value}"),
            }),
        }
    }
}

/// Alpha as a factor, which is an f32, can use it.
fn checked_alpha(field: &'static str, alpha: f64) -> Result<f64, AdapterProblem> {
    let factor = alpha as f32;
    if factor.is_finite() && factor != 0.0 {
        Ok(alpha)
    } else {
        Err(AdapterProblem::Alpha { field, alpha })
    }
}
