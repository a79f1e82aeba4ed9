//! The header of one safetensors file.
//!
//! ```text
//! u64 length of the header
//! JSON { name: { dtype, shape, data_offsets: [begin, end] }, …, "__metadata__": {…} }
//! data: the tensors without gaps, offsets counted from its start
//! ```
//!
//! The format's rules are checked to the letter: tensors fill the data section, do not overlap, and
//! have as many bytes as their shape needs.

use super::element::ElementType;
use super::error::{EntryFault, FolderError, FolderProblem, HeaderFault};
use crate::dims::Dims;
use serde::Deserialize;
use serde::de::{Deserializer as _, Error as _, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

/// The longest header that the format allows.
const MAX_HEADER_BYTES: u64 = 100_000_000;
/// The most tensors accepted in one file; the largest models have a few thousand.
const MAX_TENSORS: usize = 1 << 16;
/// The entry that is not a tensor.
const METADATA_KEY: &str = "__metadata__";

/// One tensor of a safetensors file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SafetensorInfo {
    /// Name, as in the file.
    pub name: String,
    /// Dimensions in ggml's order, the reverse of the header's: the length of a row first. A scalar
    /// has one dimension of 1.
    pub dims: Dims,
    /// Type of the elements.
    pub element: ElementType,
    /// Which file of the folder holds it, from 0.
    pub part: usize,
    /// Where it lies in that file, in bytes.
    pub range: Range<usize>,
}

/// An entry as it stands in the header.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEntry<'a> {
    #[serde(borrow)]
    dtype: Cow<'a, str>,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

/// Reads and checks the header of a whole file, which errors call `path`; the tensors come in the order of their data.
///
/// Names are not compared with each other: [`super::ModelFolder`] does that over all files.
pub fn read_safetensors_header(
    path: &Path,
    file: &[u8],
) -> Result<Vec<SafetensorInfo>, FolderError> {
    read_header(file).map_err(|problem| problem.in_file(path))
}

/// The same for a caller that adds the file's name to errors.
pub(crate) fn read_header(file: &[u8]) -> Result<Vec<SafetensorInfo>, FolderProblem> {
    let (json, data_start) = header_json(file)?;
    let data_len = file.len() - data_start;
    let mut tensors = parse_json(json, data_len)?;
    tensors.sort_unstable_by_key(|tensor| (tensor.range.start, tensor.range.end));
    let mut end = 0;
    for tensor in &mut tensors {
        let begin = tensor.range.start;
        if begin != end {
            let previous_end = end;
            let fault = EntryFault::Order {
                begin,
                previous_end,
            };
            return Err(FolderProblem::tensor(&tensor.name, fault));
        }
        end = tensor.range.end;
        tensor.range = data_start + begin..data_start + end;
    }
    if end != data_len {
        let available = data_len;
        return Err(HeaderFault::Uncovered { end, available }.into());
    }
    Ok(tensors)
}

/// The bytes of the JSON, and where the data starts.
fn header_json(file: &[u8]) -> Result<(&[u8], usize), HeaderFault> {
    let (length, rest) = file.split_first_chunk().ok_or(HeaderFault::Truncated)?;
    let length = u64::from_le_bytes(*length);
    let limit = MAX_HEADER_BYTES;
    if length > limit {
        return Err(HeaderFault::Length { length, limit });
    }
    let length = usize::try_from(length).map_err(|_| HeaderFault::Truncated)?;
    let json = rest.get(..length).ok_or(HeaderFault::Truncated)?;
    Ok((json, size_of::<u64>() + length))
}

fn parse_json(json: &[u8], data_len: usize) -> Result<Vec<SafetensorInfo>, FolderProblem> {
    let mut outcome = Ok(Vec::new());
    let visitor = HeaderVisitor {
        data_len,
        outcome: &mut outcome,
    };
    let mut parser = serde_json::Deserializer::from_slice(json);
    let parsed = parser.deserialize_map(visitor).and_then(|()| parser.end());
    match outcome {
        Ok(tensors) => match parsed {
            Ok(()) => Ok(tensors),
            Err(error) => Err(HeaderFault::Json(error).into()),
        },
        // Found while parsing, and more precise than the parser's own error.
        Err(problem) => Err(problem),
    }
}

/// Checks each entry as it is parsed, so that only one is held in its JSON form.
struct HeaderVisitor<'o> {
    data_len: usize,
    outcome: &'o mut Result<Vec<SafetensorInfo>, FolderProblem>,
}

impl<'de> Visitor<'de> for HeaderVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object with an entry for each tensor")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut tensors = Vec::new();
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            if name == METADATA_KEY {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            if tensors.len() == MAX_TENSORS {
                let message = format!("more than {MAX_TENSORS} tensors in one file");
                return Err(A::Error::custom(message));
            }
            match check_entry(&name, &map.next_value()?, self.data_len) {
                Ok(tensor) => tensors.push(tensor),
                Err(fault) => {
                    *self.outcome = Err(FolderProblem::tensor(&name, fault));
                    return Err(A::Error::custom("a tensor is described wrongly"));
                }
            }
        }
        *self.outcome = Ok(tensors);
        Ok(())
    }
}

/// Checks an entry on its own; its range is still relative to the data section.
fn check_entry(
    name: &str,
    entry: &RawEntry<'_>,
    data_len: usize,
) -> Result<SafetensorInfo, EntryFault> {
    let element = ElementType::from_name(&entry.dtype).ok_or_else(|| EntryFault::UnknownType {
        found: entry.dtype.to_string(),
    })?;
    let shape_fault = || EntryFault::Shape {
        shape: entry.shape.clone(),
    };
    let dims = dims_of_shape(&entry.shape).ok_or_else(shape_fault)?;
    let needed = dims.n_elements().checked_mul(element.bytes());
    let needed = needed.ok_or_else(shape_fault)?;
    let [begin, end] = entry.data_offsets;
    let range = range_within(begin, end, data_len).ok_or(EntryFault::BeyondFile {
        begin,
        end,
        available: data_len,
    })?;
    let found = range.len();
    if found != needed {
        return Err(EntryFault::Size { found, needed });
    }
    Ok(SafetensorInfo {
        name: name.to_string(),
        dims,
        element,
        part: 0,
        range,
    })
}

/// A header's shape names the outermost dimension first; a scalar has none.
fn dims_of_shape(shape: &[u64]) -> Option<Dims> {
    match shape {
        [] => Dims::new(&[1]),
        _ if shape.len() > crate::dims::MAX_DIMS => None,
        _ => Dims::new(&shape.iter().rev().copied().collect::<Vec<_>>()),
    }
}

fn range_within(begin: u64, end: u64, len: usize) -> Option<Range<usize>> {
    let (begin, end) = (usize::try_from(begin).ok()?, usize::try_from(end).ok()?);
    (begin <= end && end <= len).then_some(begin..end)
}
