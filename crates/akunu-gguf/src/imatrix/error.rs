//! Why an importance matrix could not be read.

use crate::gguf::GgufError;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A file that cannot be read as an importance matrix, and why: a sentence that names the file.
#[derive(Debug, Error)]
#[error(transparent)]
pub struct ImatrixError(Reason);

#[derive(Debug, Error)]
enum Reason {
    /// It begins as a GGUF file and is not one.
    #[error(transparent)]
    Gguf(GgufError),
    #[error("{}: {problem}", path.display())]
    File {
        path: PathBuf,
        #[source]
        problem: ImatrixProblem,
    },
}

impl From<GgufError> for ImatrixError {
    fn from(error: GgufError) -> ImatrixError {
        ImatrixError(Reason::Gguf(error))
    }
}

impl ImatrixProblem {
    /// The problem of one file.
    pub(super) fn in_file(self, path: &Path) -> ImatrixError {
        let path = path.to_path_buf();
        let problem = self;
        ImatrixError(Reason::File { path, problem })
    }
}

/// What is wrong with the file of an importance matrix.
#[derive(Debug, Error)]
pub(super) enum ImatrixProblem {
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
