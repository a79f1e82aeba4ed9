//! What a command can end with, other than success.

use std::process::ExitCode;

/// The exit code of a command that cannot run on this machine.
pub const LACKING: u8 = 3;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The command line asks for something that does not exist.
    #[error("{0}")]
    Usage(String),
    /// The command ran and found something wrong; it has said what in the message.
    #[error("{0}")]
    Found(String),
    /// This machine lacks something, which is no fault of the project.
    #[error("{why}; {fix}")]
    Unavailable {
        /// What is wanted and what was found.
        why: String,
        /// What a person can do about it.
        fix: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// An asset could not be fetched.
    #[error(transparent)]
    Asset(#[from] akunu_fetch::FetchError),
    /// Another program could not be run, or failed.
    #[error(transparent)]
    Process(#[from] crate::process::ProcessError),
}

impl Failure {
    /// 2 for a mistake on the command line, as clap does; 3 for what this machine lacks; 1 for
    /// everything else.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Usage(_) => ExitCode::from(2),
            Failure::Unavailable { .. } => ExitCode::from(LACKING),
            _ => ExitCode::FAILURE,
        }
    }

    /// An I/O failure that names its file.
    pub fn io(path: &std::path::Path, source: std::io::Error) -> Failure {
        Failure::Io {
            path: path.display().to_string(),
            source,
        }
    }
}
