//! One GGUF file, from magic to data section.
//!
//! ```text
//! "GGUF"  u32 version  u64 tensor count  u64 metadata count
//! metadata entries     key, u32 type, value
//! tensor entries       name, u32 n_dims, u64 dims[], u32 type, u64 offset in the data section
//! padding to a multiple of `general.alignment`
//! data section
//! ```
//!
//! Everything is checked here, once, in one walk over the header; the data section is not touched.

use super::cursor::Cursor;
use super::error::{Fault, GgufError, Problem};
use super::metadata::Metadata;
use super::tensor::{DataSection, MIN_ENTRY_BYTES, RawTensor, TensorInfo};
use crate::mmap::FileBytes;
use std::sync::Arc;

/// What a GGUF file begins with.
pub(crate) const MAGIC: [u8; 4] = *b"GGUF";
/// The version that we write.
pub(crate) const NEWEST_VERSION: u32 = 3;
/// The alignment of a file that does not name one.
pub(crate) const DEFAULT_ALIGNMENT: usize = 32;
/// The key that names another alignment.
pub(crate) const ALIGNMENT_KEY: &str = "general.alignment";
/// The least alignment accepted.
pub(crate) const MIN_ALIGNMENT: u64 = 8;
/// The largest alignment accepted.
pub(crate) const MAX_ALIGNMENT: u64 = 1 << 20;
/// The most tensors accepted in one file; the largest models have some tens of thousands.
pub(crate) const MAX_TENSORS: usize = 1 << 16;

/// One parsed file. A model may consist of several: see [`crate::GgufFile`].
#[derive(Debug)]
pub(crate) struct ParsedFile {
    pub(crate) file: Arc<FileBytes>,
    pub(crate) version: u32,
    pub(crate) metadata: Metadata,
    pub(crate) tensors: Vec<TensorInfo>,
}

impl ParsedFile {
    pub(crate) fn new(file: Arc<FileBytes>) -> Result<ParsedFile, GgufError> {
        let in_file = |problem: Problem| problem.in_bytes(file.len()).in_file(file.path());
        parse(&file).map_err(in_file)
    }
}

fn parse(file: &Arc<FileBytes>) -> Result<ParsedFile, Problem> {
    let mut cursor = Cursor::new(file);
    let version = read_version(&mut cursor)?;
    let (n_tensors, n_entries) = read_counts(&mut cursor)?;
    let metadata = Metadata::read(file, &mut cursor, n_entries)?;
    let mut raw = Vec::with_capacity(n_tensors);
    for index in 0..n_tensors {
        raw.push(RawTensor::read(&mut cursor, index)?);
    }
    let data = data_section(&metadata, cursor)?;
    Ok(ParsedFile {
        file: Arc::clone(file),
        version,
        metadata,
        tensors: place_all(raw, data)?,
    })
}

fn read_version(cursor: &mut Cursor<'_>) -> Result<u32, Problem> {
    let found = cursor.take(cursor.remaining().min(MAGIC.len()));
    let found = found.unwrap_or_default().to_vec();
    if found != MAGIC {
        return Err(Problem::Magic { found });
    }
    let version = cursor.u32().map_err(|fault| header("version", fault))?;
    match (version, version.swap_bytes()) {
        (2..=NEWEST_VERSION, _) => Ok(version),
        (_, version @ 1..=NEWEST_VERSION) => Err(Problem::BigEndian { version }),
        _ => Err(Problem::Version { version }),
    }
}

fn read_counts(cursor: &mut Cursor<'_>) -> Result<(usize, usize), Problem> {
    let n_tensors = cursor.count(MIN_ENTRY_BYTES);
    let n_tensors = n_tensors.map_err(|fault| header("tensor count", fault))?;
    if n_tensors > MAX_TENSORS {
        return Err(Problem::TooManyTensors {
            count: n_tensors,
            limit: MAX_TENSORS,
        });
    }
    let n_entries = Metadata::read_count(cursor);
    let n_entries = n_entries.map_err(|fault| header("metadata count", fault))?;
    Ok((n_tensors, n_entries))
}

fn header(field: &'static str, fault: Fault) -> Problem {
    Problem::Header { field, fault }
}

/// Where the data section is, given a cursor that stands behind the tensor list.
fn data_section(metadata: &Metadata, cursor: Cursor<'_>) -> Result<DataSection, Problem> {
    let alignment = alignment(metadata)?;
    let start = cursor.position().next_multiple_of(alignment);
    let file_len = cursor.position() + cursor.remaining();
    Ok(DataSection {
        start,
        // A file without tensors may end before the padding does.
        len: file_len.saturating_sub(start),
        alignment,
    })
}

fn alignment(metadata: &Metadata) -> Result<usize, Problem> {
    let Some(value) = metadata.get(ALIGNMENT_KEY) else {
        return Ok(DEFAULT_ALIGNMENT);
    };
    let alignment = value
        .as_integer()
        .and_then(|n| u64::try_from(n).ok())
        .ok_or_else(|| Problem::wrong_type(ALIGNMENT_KEY, value.describe(), "u32"))?;
    if alignment.is_power_of_two() && (MIN_ALIGNMENT..=MAX_ALIGNMENT).contains(&alignment) {
        Ok(alignment as usize)
    } else {
        Err(Problem::Alignment { alignment })
    }
}

fn place_all(raw: Vec<RawTensor>, data: DataSection) -> Result<Vec<TensorInfo>, Problem> {
    let end = raw.iter().filter_map(RawTensor::end).max().unwrap_or(0);
    if end > data.len {
        return Err(Problem::Incomplete {
            found: data.start + data.len,
            wanted: data.start.saturating_add(end),
        });
    }
    let mut tensors = Vec::with_capacity(raw.len());
    let mut previous_end = 0;
    for (index, tensor) in raw.into_iter().enumerate() {
        let tensor = tensor.place(index, data, previous_end)?;
        previous_end = tensor.range.end - data.start;
        tensors.push(tensor);
    }
    Ok(tensors)
}
