//! The section of `config.json` that describes a quantisation.

use crate::safetensors::error::{FolderProblem, QuantizationFault};
use serde_json::{Map, Value};

/// The section, and the key that it has in `config.json`.
pub(super) struct Settings<'a> {
    pub key: &'a str,
    pub fields: &'a Map<String, Value>,
}

impl Settings<'_> {
    /// A setting; `None` where it is missing or null.
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.fields.get(field).filter(|value| !value.is_null())
    }

    /// A text; `default` where it is missing.
    pub fn text(&self, field: &'static str, default: &str) -> String {
        let shown = |value: &Value| value.as_str().map_or(value.to_string(), str::to_string);
        self.get(field).map_or(default.to_string(), shown)
    }

    /// One of some numbers.
    pub fn bits(&self, allowed: &[u32], words: &'static str) -> Result<u32, FolderProblem> {
        let found = self.get("bits");
        let number = found.and_then(Value::as_u64);
        let is_allowed = |&&bits: &&u32| number == Some(u64::from(bits));
        let shown = || found.map_or("missing".to_string(), Value::to_string);
        let bits = allowed.iter().find(is_allowed);
        bits.copied()
            .ok_or_else(|| self.number("bits", shown(), words))
    }

    /// Values of a row that share a scale; `None` for those of a whole row, which is written as -1.
    pub fn group_size(&self) -> Result<Option<usize>, FolderProblem> {
        let found = self.get("group_size");
        let number = found.map_or(Some(-1), Value::as_i64);
        let shown = || found.map_or(String::new(), Value::to_string);
        match number.map(usize::try_from) {
            Some(Ok(size @ 1..)) => Ok(Some(size)),
            Some(Err(_)) if number == Some(-1) => Ok(None),
            _ => Err(self.number("group_size", shown(), "a number of values or -1")),
        }
    }

    /// Rows and columns that share a scale, as a list of two numbers.
    pub fn block(&self, field: &'static str) -> Result<Option<[usize; 2]>, FolderProblem> {
        let Some(found) = self.get(field) else {
            return Ok(None);
        };
        let size = |value: &Value| usize::try_from(value.as_u64()?).ok().filter(|&n| n > 0);
        let sizes = match found.as_array().map(Vec::as_slice) {
            Some([rows, cols]) => size(rows).zip(size(cols)),
            _ => None,
        };
        match sizes {
            Some((rows, cols)) => Ok(Some([rows, cols])),
            None => Err(self.number(field, found.to_string(), "two numbers of rows and columns")),
        }
    }

    /// A setting that is none of those that are supported.
    pub fn number(
        &self,
        field: &'static str,
        found: String,
        allowed: &'static str,
    ) -> FolderProblem {
        FolderProblem::Quantization {
            key: self.key.to_string(),
            fault: QuantizationFault::Number {
                field,
                found,
                allowed,
            },
        }
    }
}
