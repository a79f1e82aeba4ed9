//! Quantisations of folders that no device reads as they lie: one method a file.
//!
//! A method knows what the tensors of a weight are called, and reads its rows from them: integers with a scale and a zero for
//! each group, which keep their values in MLX's layout, or numbers, which become Q8_0.

mod awq;
mod bits;
mod bitsandbytes;
mod compressed;
mod contract;
mod fp4;
mod fp8;
mod gptq;
mod parts;
mod settings;

pub(crate) use contract::{Method, Methods};
pub(super) use parts::{Part, Parts};

use super::error::FolderProblem;
use settings::Settings;

/// Makes the methods of the settings in `config.json`.
type FromSettings = fn(&Settings) -> Result<Methods, FolderProblem>;

/// All of them, by the name that `quant_method` has for them.
const METHODS: [(&str, FromSettings); 7] = [
    ("awq", awq::methods),
    ("bitsandbytes", bitsandbytes::methods),
    ("compressed-tensors", compressed::methods),
    ("fbgemm_fp8", fp8::methods),
    ("fp8", fp8::methods),
    ("gptq", gptq::methods),
    ("modelopt", fp4::methods),
];

/// The methods of this name, with the settings of `config.json`; `None` for a name that is not in the table.
pub(super) fn find(
    name: &str,
    key: &str,
    fields: &serde_json::Map<String, serde_json::Value>,
) -> Option<Result<Methods, FolderProblem>> {
    let (_, make) = METHODS.iter().find(|(known, _)| *known == name)?;
    Some(make(&Settings { key, fields }))
}

/// The names in the table.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    METHODS.iter().map(|(name, _)| *name)
}
