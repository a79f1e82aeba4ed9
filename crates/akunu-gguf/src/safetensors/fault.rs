//! Which tensor of a refused header is at fault, and why.
//!
//! The package `safetensors` often says only that some tensor is wrong. After it has refused a header, this reads the JSON
//! again and looks for the first entry that breaks a rule.

use super::error::{EntryFault, FolderProblem, HeaderFault};
use super::header::dims_of_shape;
use ::safetensors::tensor::{Dtype, SafeTensorError};
use serde::Deserialize;
use serde_json::Value;

/// An entry as it stands in the header.
#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

/// What is wrong with a header that was refused with `error`, over `available` bytes of data.
pub(super) fn explain(json: &[u8], available: usize, error: &SafeTensorError) -> FolderProblem {
    let not_valid = || HeaderFault::Invalid(error.to_string()).into();
    let Ok(Value::Object(entries)) = serde_json::from_slice(json) else {
        return not_valid();
    };
    let entries = entries.iter().filter(|(name, _)| *name != "__metadata__");
    let mut found = Vec::new();
    for (name, entry) in entries {
        let Ok(entry) = Entry::deserialize(entry) else {
            return not_valid();
        };
        if let Some(fault) = fault_of(&entry, available) {
            return FolderProblem::tensor(name, fault);
        }
        found.push((entry.data_offsets, name));
    }
    found.sort_unstable();
    let mut end = 0;
    for ((begin, next_end), name) in found {
        if begin != end {
            let previous_end = end;
            let fault = EntryFault::Order {
                begin,
                previous_end,
            };
            return FolderProblem::tensor(name, fault);
        }
        end = next_end;
    }
    match end == available as u64 {
        true => not_valid(),
        false => HeaderFault::Uncovered { end, available }.into(),
    }
}

/// What is wrong with an entry on its own.
fn fault_of(entry: &Entry, available: usize) -> Option<EntryFault> {
    let Ok(element) = Dtype::deserialize(Value::from(entry.dtype.as_str())) else {
        return Some(EntryFault::UnknownType {
            found: entry.dtype.clone(),
        });
    };
    let shape: Option<Vec<usize>> = entry
        .shape
        .iter()
        .map(|n| usize::try_from(*n).ok())
        .collect();
    let dims = shape.and_then(|shape| dims_of_shape(&shape));
    let n_bits = dims.and_then(|dims| dims.n_elements().checked_mul(element.bitsize()));
    let Some(n_bits) = n_bits else {
        let shape = format!("{:?}", entry.shape);
        return Some(EntryFault::Shape { shape });
    };
    let (begin, end) = entry.data_offsets;
    if begin > end || end > available as u64 {
        return Some(EntryFault::BeyondFile {
            begin,
            end,
            available,
        });
    }
    let (found, needed) = (end - begin, n_bits.div_ceil(8) as u64);
    (found != needed || n_bits % 8 != 0).then_some(EntryFault::Size { found, needed })
}
