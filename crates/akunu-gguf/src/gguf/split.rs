//! Models split over several files.
//!
//! Parts are named `PREFIX-00001-of-00003.gguf`. Each says in its metadata which part it is
//! (`split.no`, from 0), how many there are (`split.count`), and how many tensors all of them hold
//! together (`split.tensors.count`). The first carries the model's metadata.

use super::error::{GgufError, Problem, SplitFault};
use super::file::open_part;
use super::metadata::Metadata;
use super::parse::ParsedFile;
use std::path::Path;

const PART_KEY: &str = "split.no";
const COUNT_KEY: &str = "split.count";
const TENSORS_KEY: &str = "split.tensors.count";

/// Digits of a part's number in its name.
const DIGITS: usize = 5;

/// The file names of a split model.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SplitName {
    prefix: String,
    count: u32,
}

impl SplitName {
    /// The names of all parts when this file is one of several.
    pub(crate) fn of_part(
        path: &Path,
        parsed: &ParsedFile,
    ) -> Result<Option<SplitName>, GgufError> {
        match parsed.metadata.u32(COUNT_KEY)? {
            None | Some(0 | 1) => Ok(None),
            Some(count) => {
                let name = path.file_name().and_then(|name| name.to_str());
                let split = name.and_then(SplitName::parse);
                let split = split.ok_or(SplitFault::Name { count }).and_then(|split| {
                    agree(&parsed.metadata, COUNT_KEY, split.count)?;
                    Ok(Some(split))
                });
                split.map_err(|fault| Problem::from(fault).in_file(path))
            }
        }
    }

    /// `PREFIX-00002-of-00003.gguf`, and nothing else.
    fn parse(name: &str) -> Option<SplitName> {
        let stem = name.strip_suffix(".gguf")?;
        let (stem, count) = stem.rsplit_once("-of-")?;
        let (prefix, part) = stem.rsplit_once('-')?;
        let number = |digits: &str| -> Option<u32> {
            let all_digits = digits.len() == DIGITS && digits.bytes().all(|b| b.is_ascii_digit());
            all_digits.then(|| digits.parse().ok())?
        };
        number(part)?;
        Some(SplitName {
            prefix: prefix.to_string(),
            count: number(count)?,
        })
    }

    fn file_name(&self, part: u32) -> String {
        format!("{}-{part:05}-of-{:05}.gguf", self.prefix, self.count)
    }

    /// Opens every part, `path` being one of them, and checks that they belong together.
    pub(crate) fn open_all(&self, path: &Path) -> Result<Vec<ParsedFile>, GgufError> {
        let mut parts = Vec::new();
        for part in 1..=self.count {
            let part_path = path.with_file_name(self.file_name(part));
            if !part_path.exists() {
                let missing = SplitFault::MissingPart {
                    part,
                    count: self.count,
                    name: self.file_name(part),
                };
                return Err(Problem::from(missing).in_file(path));
            }
            let parsed = open_part(&part_path)?;
            let in_part = |fault| Problem::from(fault).in_file(&*part_path);
            agree(&parsed.metadata, PART_KEY, part - 1).map_err(in_part)?;
            agree(&parsed.metadata, COUNT_KEY, self.count).map_err(in_part)?;
            parts.push(parsed);
        }
        self.check_tensor_count(path, &parts)?;
        Ok(parts)
    }

    fn check_tensor_count(&self, path: &Path, parts: &[ParsedFile]) -> Result<(), GgufError> {
        let found = parts.iter().map(|part| part.tensors.len()).sum();
        for part in parts {
            match part.metadata.u32(TENSORS_KEY)? {
                Some(expected) if expected as usize != found => {
                    let fault = SplitFault::TensorCount { expected, found };
                    return Err(Problem::from(fault).in_file(path));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Checks that an integer of the metadata is what the file's name says.
fn agree(metadata: &Metadata, key: &'static str, expected: u32) -> Result<(), SplitFault> {
    let found = metadata.get(key).and_then(|value| value.as_integer());
    if found == Some(expected.into()) {
        return Ok(());
    }
    Err(SplitFault::Disagrees {
        key,
        found: found.and_then(|n| i64::try_from(n).ok()).unwrap_or(-1),
        expected,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_parts_are_taken_apart_and_put_together() {
        let name = SplitName::parse("llama-70b-q4-00002-of-00003.gguf").unwrap();
        assert_eq!(name.count, 3);
        assert_eq!(name.file_name(1), "llama-70b-q4-00001-of-00003.gguf");
    }

    #[test]
    fn other_names_are_not_parts() {
        for name in [
            "model.gguf",
            "model-1-of-3.gguf",
            "model-00001-of-00003.bin",
            "model-0000a-of-00003.gguf",
            "00001-of-00003.gguf",
        ] {
            assert_eq!(SplitName::parse(name), None, "{name}");
        }
    }
}
