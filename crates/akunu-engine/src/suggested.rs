//! The sampling options that a model's files suggest.
//!
//! GGUF files may have `general.sampling.*`, folders a `generation_config.json`:
//!
//! ```text
//!                       GGUF              generation_config.json
//! temperature           temp              temperature; 0 when do_sample is false
//! top_k                 top_k             top_k
//! top_p                 top_p             top_p
//! min_p                 min_p             min_p
//! repetition_penalty    penalty_repeat    repetition_penalty
//! penalty_window        penalty_last_n    -
//! ```
//!
//! A wrong suggestion does not keep a model from loading: values out of their range are ignored.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use akunu_gguf::{Container, Metadata, WeightStore};
use serde_json::Value;

use crate::sampling::SamplingOptions;

/// A `generation_config.json` has a few hundred bytes: a larger file is none.
const MAX_BYTES: u64 = 1 << 20;

/// What a model suggests, as far as it is in range.
pub(crate) fn suggested(store: &WeightStore) -> SamplingOptions {
    let found = match store.container() {
        Container::Gguf(file) => from_metadata(file.metadata()),
        Container::Folder(folder) => from_folder(folder.path()),
    };
    found.in_range()
}

fn from_metadata(metadata: &Metadata) -> SamplingOptions {
    let key = |name: &str| format!("general.sampling.{name}");
    let number = |name: &str| metadata.f32(&key(name)).ok().flatten();
    let count = |name: &str| metadata.u32(&key(name)).ok().flatten();
    SamplingOptions {
        temperature: number("temp"),
        top_k: count("top_k"),
        top_p: number("top_p"),
        min_p: number("min_p"),
        repetition_penalty: number("penalty_repeat"),
        penalty_window: count("penalty_last_n"),
        ..SamplingOptions::default()
    }
}

fn from_folder(folder: &Path) -> SamplingOptions {
    let json = File::open(folder.join("generation_config.json"))
        .ok()
        .and_then(|file| serde_json::from_reader(file.take(MAX_BYTES)).ok());
    let json: Value = json.unwrap_or_default();
    let number = |name: &str| Some(json.get(name)?.as_f64()? as f32);
    let greedy = json.get("do_sample").and_then(Value::as_bool) == Some(false);
    SamplingOptions {
        temperature: if greedy {
            Some(0.0)
        } else {
            number("temperature")
        },
        top_k: json
            .get("top_k")
            .and_then(Value::as_u64)
            .map(|k| k.min(u32::MAX.into()) as u32),
        top_p: number("top_p"),
        min_p: number("min_p"),
        repetition_penalty: number("repetition_penalty"),
        ..SamplingOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_folder_says_counts_unless_it_is_nonsense() {
        let folder = tempfile::tempdir().expect("a folder");
        let says = |text: &str| {
            std::fs::write(folder.path().join("generation_config.json"), text).expect("written");
            from_folder(folder.path()).in_range()
        };
        let found = says(
            r#"{"do_sample": true, "temperature": 0.6, "top_k": 1000, "top_p": 0.0,
                "repetition_penalty": 1.1, "eos_token_id": [1, 2]}"#,
        );
        let wanted = SamplingOptions {
            temperature: Some(0.6),
            top_k: Some(1000),
            repetition_penalty: Some(1.1),
            ..SamplingOptions::default()
        };
        assert_eq!(found, wanted);
        assert_eq!(says(r#"{"do_sample": false}"#).temperature, Some(0.0));
        for nothing in ["{", "[]", r#"{"temperature": -1, "min_p": "x"}"#] {
            assert_eq!(says(nothing), SamplingOptions::default(), "{nothing}");
        }
    }
}
