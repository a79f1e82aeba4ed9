//! Why an importance matrix could not be read.

use crate::gguf::GgufError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// A file that cannot be read as an importance matrix.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImatrixError {
    /// It begins as a GGUF file and is not one.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// Anything else.
    #[error("{}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: ImatrixProblem,
    },
}

/// What is wrong with the file of an importance matrix.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImatrixProblem {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It has no entry.
    #[error("it holds no importance matrix: a GGUF file of one has tensors that end in .in_sum2")]
    NoEntries,
    /// A tensor of it has the wrong type or size, or is not there.
    #[error("{name}: {why}")]
    Entry {
        /// The tensor.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// It is no GGUF file, and the older form ends or breaks off at this place.
    #[error("it is neither a GGUF file nor a .dat file of importances: {what} at byte {at}")]
    Legacy {
        /// What was expected or found.
        what: &'static str,
        /// Where.
        at: usize,
    },
}
