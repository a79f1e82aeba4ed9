//! Importance matrices: how large the inputs of each matrix are, column by column.
//!
//! A product reads `y = W x`. For each column of `W` the sum of `x²` over many tokens is kept, and the
//! number of tokens. Their quotient weighs the errors of that column when `W` is quantised. Files are
//! llama.cpp's, in either of its forms. The newer one is a GGUF file with two tensors for each matrix,
//! both f32:
//!
//! ```text
//! <name>.in_sum2   (matrices, columns)   sums of x²
//! <name>.counts    (matrices, 1)         tokens
//! ```
//!
//! A tensor of several matrices, the experts of a layer, has a row for each. The older form, `.dat`, is
//! in [`legacy`].

mod error;
mod legacy;

pub use self::error::ImatrixError;

use self::error::ImatrixProblem;

use crate::gguf::{GgufError, GgufFile, GgufHeader, Metadata, TensorView};
use crate::mmap::FileBytes;
use akunu_types::DType;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

const SUMS: &str = ".in_sum2";
const COUNTS: &str = ".counts";
const DATASETS: &str = "imatrix.datasets";
const CHUNK_COUNT: &str = "imatrix.chunk_count";
const CHUNK_SIZE: &str = "imatrix.chunk_size";

/// What was seen of one tensor's inputs.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    /// Sums of squares, (matrices, columns).
    sums: Vec<f64>,
    /// Tokens of each matrix; it divides the number of sums.
    counts: Vec<f64>,
}

/// An importance matrix: an entry for each tensor, by its name in GGUF files.
///
/// ```
/// use akunu_gguf::ImportanceMatrix;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("imatrix.gguf");
/// let mut matrix = ImportanceMatrix::new("text.txt", 512);
/// // Two tokens, three columns.
/// matrix.add("blk.0.attn_q.weight", 3, &[1.0, 0.0, 2.0, 3.0, 0.0, 2.0]);
/// matrix.end_chunk();
/// matrix.write(&path)?;
///
/// let matrix = ImportanceMatrix::open(&path)?;
/// assert_eq!(matrix.means("blk.0.attn_q.weight"), Some(vec![5.0, 0.0, 4.0]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportanceMatrix {
    entries: BTreeMap<String, Entry>,
    datasets: Vec<String>,
    n_chunks: u32,
    chunk_size: u32,
}

impl ImportanceMatrix {
    /// An empty one, for a text that is read in chunks of `chunk_size` tokens.
    pub fn new(dataset: &str, chunk_size: u32) -> ImportanceMatrix {
        ImportanceMatrix {
            datasets: vec![dataset.to_string()],
            chunk_size,
            ..ImportanceMatrix::default()
        }
    }

    /// Adds the inputs of a matrix, row after row of `cols` values. An entry has as many matrices and columns as it began with;
    /// other inputs are not counted.
    pub fn add(&mut self, name: &str, cols: usize, rows: &[f32]) {
        let n_rows = rows.len() / cols.max(1);
        self.add_stack(name, [1, cols], rows, &vec![0; n_rows]);
    }

    /// Adds the inputs of a stack of `count` matrices, the experts of a layer. Each row is that of as many matrices as there are
    /// `chosen` ones for a row.
    pub fn add_stack(
        &mut self,
        name: &str,
        [count, cols]: [usize; 2],
        rows: &[f32],
        chosen: &[u32],
    ) {
        if !self.entries.contains_key(name) {
            let (sums, counts) = (vec![0.0; count * cols], vec![0.0; count]);
            self.entries.insert(name.into(), Entry { sums, counts });
        }
        let Some(entry) = self.entries.get_mut(name) else {
            return;
        };
        if [entry.counts.len(), entry.sums.len()] != [count, count * cols] || cols == 0 {
            return;
        }
        let rows = rows.chunks_exact(cols);
        let of_row = chosen.len() / rows.len().max(1);
        for (row, chosen) in rows.zip(chosen.chunks_exact(of_row.max(1))) {
            for at in chosen.iter().map(|&at| at as usize) {
                let sums = entry.sums.chunks_exact_mut(cols).nth(at);
                for (sum, &x) in sums.into_iter().flatten().zip(row) {
                    *sum += f64::from(x) * f64::from(x);
                }
                if let Some(count) = entry.counts.get_mut(at) {
                    *count += 1.0;
                }
            }
        }
    }

    /// Counts a chunk whose inputs were all added.
    pub fn end_chunk(&mut self) {
        self.n_chunks += 1;
    }

    /// The names that have an entry.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// The mean square of each column's inputs, matrix after matrix. Where a matrix saw no tokens nothing
    /// is known, and all its columns count the same.
    pub fn means(&self, name: &str) -> Option<Vec<f32>> {
        let entry = self.entries.get(name)?;
        let cols = entry.sums.len() / entry.counts.len();
        let rows = entry.sums.chunks_exact(cols).zip(&entry.counts);
        let means = rows.flat_map(|(sums, &count)| {
            sums.iter()
                .map(move |sum| if count > 0.0 { sum / count } else { 1.0 } as f32)
        });
        Some(means.collect())
    }

    /// The texts that it was computed from, as its maker named them.
    pub fn datasets(&self) -> &[String] {
        &self.datasets
    }

    /// Chunks that it was computed from; 0 when the file does not say.
    pub fn n_chunks(&self) -> u32 {
        self.n_chunks
    }

    /// Reads a file in either form.
    pub fn open(path: impl AsRef<Path>) -> Result<ImportanceMatrix, ImatrixError> {
        let path = path.as_ref();
        let fail = |problem: ImatrixProblem| problem.in_file(path);
        let is_gguf = begins_as_gguf(path).map_err(|error| fail(error.into()))?;
        let read = if is_gguf {
            let file = GgufFile::open(path)?;
            ImportanceMatrix::from_metadata(file.metadata())?.with_tensors(&file)
        } else {
            let bytes = FileBytes::map(path).map_err(|error| fail(error.into()))?;
            legacy::read(&bytes)
        };
        let matrix = read.map_err(fail)?;
        matrix.check().map_err(fail)?;
        Ok(matrix)
    }

    fn from_metadata(metadata: &Metadata) -> Result<ImportanceMatrix, GgufError> {
        let datasets = metadata.strings(DATASETS)?;
        Ok(ImportanceMatrix {
            entries: BTreeMap::new(),
            datasets: datasets.map_or_else(Vec::new, |all| all.map(str::to_string).collect()),
            n_chunks: metadata.u32(CHUNK_COUNT)?.unwrap_or(0),
            chunk_size: metadata.u32(CHUNK_SIZE)?.unwrap_or(0),
        })
    }

    fn with_tensors(mut self, file: &GgufFile) -> Result<ImportanceMatrix, ImatrixProblem> {
        for tensor in file.tensors() {
            let Some(name) = tensor.name.strip_suffix(SUMS) else {
                continue;
            };
            let values = |end: &str| {
                let view = file.tensor(&format!("{name}{end}"));
                values(view).map_err(|why| ImatrixProblem::Entry {
                    name: format!("{name}{end}"),
                    why,
                })
            };
            let (sums, counts) = (values(SUMS)?, values(COUNTS)?);
            self.entries.insert(name.into(), Entry { sums, counts });
        }
        Ok(self)
    }

    fn check(&self) -> Result<(), ImatrixProblem> {
        if self.entries.is_empty() {
            return Err(ImatrixProblem::NoEntries);
        }
        for (name, entry) in &self.entries {
            let fail = |why| ImatrixProblem::Entry {
                name: name.clone(),
                why,
            };
            let (sums, counts) = (entry.sums.len(), entry.counts.len());
            if counts == 0 || sums == 0 || !sums.is_multiple_of(counts) {
                return Err(fail(format!("{sums} sums do not fit {counts} counts")));
            }
            let is_bad = |x: &&f64| !(x.is_finite() && **x >= 0.0);
            if let Some(bad) = entry.sums.iter().chain(&entry.counts).find(is_bad) {
                return Err(fail(format!("it holds {bad}, which no sum of squares is")));
            }
        }
        Ok(())
    }

    /// Writes the GGUF form.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), GgufError> {
        let mut header = GgufHeader::new();
        let datasets: Vec<&str> = self.datasets.iter().map(String::as_str).collect();
        header.set("general.type", "imatrix");
        header.set(DATASETS, &datasets[..]);
        header.set(CHUNK_COUNT, &self.n_chunks);
        header.set(CHUNK_SIZE, &self.chunk_size);
        for (name, entry) in &self.entries {
            let n = entry.counts.len() as u64;
            let cols = entry.sums.len() as u64 / n;
            header.tensor(&format!("{name}{SUMS}"), &[cols, n], DType::F32);
            header.tensor(&format!("{name}{COUNTS}"), &[1, n], DType::F32);
        }
        let mut writer = header.create(path)?;
        for (name, entry) in &self.entries {
            writer.write(&format!("{name}{SUMS}"), &f32_bytes(&entry.sums))?;
            writer.write(&format!("{name}{COUNTS}"), &f32_bytes(&entry.counts))?;
        }
        writer.finish()
    }
}

fn begins_as_gguf(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    File::open(path)?.take(4).read_to_end(&mut start)?;
    Ok(start == b"GGUF")
}

/// The values of an f32 tensor.
fn values(view: Option<TensorView>) -> Result<Vec<f64>, String> {
    let view = view.ok_or("it is missing")?;
    if view.info.dtype != DType::F32 {
        return Err(format!("its type is {}, it must be f32", view.info.dtype));
    }
    let (words, _) = view.bytes.as_chunks::<4>();
    let values = words
        .iter()
        .map(|word| f64::from(f32::from_le_bytes(*word)));
    Ok(values.collect())
}

fn f32_bytes(values: &[f64]) -> Vec<u8> {
    let bytes = values.iter().flat_map(|&x| (x as f32).to_le_bytes());
    bytes.collect()
}
