//! Vectors as lines of JSON, or as a NumPy array.
//!
//! An array is the magic `\x93NUMPY`, version 1.0, the length of the header as u16, the header (a Python dictionary,
//! padded with spaces so that the numbers begin at a multiple of 64, and a newline), and the numbers row by row.

use crate::failure::Failure;
use akunu::Embedding;
use akunu_gguf::WholeFile;
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};

/// What the numbers begin at a multiple of.
const ALIGNMENT: usize = 64;

/// A text and its vector, in JSON.
#[derive(Serialize)]
struct Line<'a> {
    text: &'a str,
    embedding: &'a [f32],
    tokens: usize,
}

/// Where vectors go.
#[derive(Clone, Copy)]
pub enum Format<'a> {
    /// Lines of JSON.
    Json,
    /// A NumPy array in this file.
    Npy(&'a Path),
}

/// Writes vectors as they come.
pub enum Output<'a> {
    Json(&'a mut dyn Write),
    Npy(WholeFile, PathBuf),
}

impl<'a> Output<'a> {
    /// Begins a list of so many vectors of so many numbers.
    pub fn new(
        format: Format,
        (rows, cols): (usize, usize),
        out: &'a mut dyn Write,
    ) -> Result<Output<'a>, Failure> {
        let Format::Npy(path) = format else {
            return Ok(Output::Json(out));
        };
        let failed = failed(path);
        let mut file = WholeFile::create(path).map_err(&failed)?;
        file.write_all(&npy_header(rows, cols)).map_err(&failed)?;
        Ok(Output::Npy(file, path.to_path_buf()))
    }

    pub fn write(&mut self, text: &str, embedding: &Embedding) -> Result<(), Failure> {
        match self {
            Output::Json(out) => {
                let line = Line {
                    text,
                    embedding: &embedding.vector,
                    tokens: embedding.n_tokens,
                };
                serde_json::to_writer(&mut *out, &line)?;
                Ok(writeln!(out)?)
            }
            Output::Npy(file, path) => {
                let bytes: Vec<u8> = embedding
                    .vector
                    .iter()
                    .flat_map(|number| number.to_le_bytes())
                    .collect();
                file.write_all(&bytes).map_err(failed(path))
            }
        }
    }

    /// Makes sure that all of it is there.
    pub fn finish(self) -> Result<(), Failure> {
        match self {
            Output::Json(out) => Ok(out.flush()?),
            Output::Npy(file, path) => file.finish().map_err(failed(&path)),
        }
    }
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Failure {
    let path = path.to_path_buf();
    move |source| Failure::Write {
        path: path.clone(),
        source,
    }
}

/// What stands before the numbers of an array of f32.
fn npy_header(rows: usize, cols: usize) -> Vec<u8> {
    let description =
        format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {cols}), }}");
    let before = 10;
    let len = (before + description.len() + 1).next_multiple_of(ALIGNMENT) - before;
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend((len as u16).to_le_bytes());
    header.extend(description.as_bytes());
    header.resize(before + len - 1, b' ');
    header.push(b'\n');
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NumPy refuses a header whose length or padding is wrong.
    #[test]
    fn the_numbers_of_an_array_begin_at_a_multiple_of_64() {
        for (rows, cols) in [(0, 1), (3, 384), (1_000_000, 4096)] {
            let header = npy_header(rows, cols);
            assert!(header.starts_with(b"\x93NUMPY\x01\x00") && header.ends_with(b"\n"));
            assert_eq!(header.len() % 64, 0);
            let len = u16::from_le_bytes([header[8], header[9]]) as usize;
            assert_eq!(header.len(), 10 + len);
            let shape = format!("'shape': ({rows}, {cols}), }}");
            assert!(String::from_utf8_lossy(&header).contains(&shape));
        }
    }
}
