//! Where pages and states are kept.

use std::path::PathBuf;

/// A folder for pages and states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheOptions {
    /// The folder; it is made if it is not there.
    pub folder: PathBuf,
    /// Bytes of its files, at most. The files that were not used longest go first.
    pub max_bytes: u64,
}
