//! Texts, one in each line of a file or of standard input.

use crate::failure::Failure;
use crate::input::{self, read_input, read_text};
use std::path::Path;

/// The lines of a file, or of standard input where there is none.
pub fn read(file: Option<&Path>) -> Result<Vec<String>, Failure> {
    let text = match file {
        Some(path) => read_text(path, input::CORPUS)?,
        None => read_input(input::CORPUS)?,
    };
    checked(text.lines().map(str::to_string).collect())
}

/// The same texts, if there are some and none is empty: nothing can be made of an empty one.
pub fn checked(texts: Vec<String>) -> Result<Vec<String>, Failure> {
    if texts.is_empty() {
        return Err(Failure::NoTexts);
    }
    match texts.iter().position(|text| text.trim().is_empty()) {
        Some(at) => Err(Failure::EmptyText { number: at + 1 }),
        None => Ok(texts),
    }
}

/// An error of a batch that begins with text `first` of all.
pub fn of_batch(error: akunu::Error, first: usize) -> Failure {
    match error {
        akunu::Error::TextTooLong { index, found, max } => Failure::LongText {
            number: first + index + 1,
            found,
            max,
        },
        other => other.into(),
    }
}
