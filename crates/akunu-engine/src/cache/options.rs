//! Where pages and states are kept.

use std::path::PathBuf;

/// A folder for pages and states: `akunu-cache` in the working directory and 20 GiB, if nothing else is said.
///
/// Later versions may have further fields: end a value with `..CacheOptions::default()`.
///
/// ```no_run
/// use akunu_engine::CacheOptions;
/// # fn example(model: &akunu_engine::Model) {
/// let folder = "cache".into();
/// model.use_cache(&CacheOptions { folder, ..CacheOptions::default() });
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheOptions {
    /// The folder; it is made if it is not there.
    pub folder: PathBuf,
    /// Bytes of its files, at most. The files that were not used longest go first.
    pub max_bytes: u64,
    /// Makes room for further options.
    #[doc(hidden)]
    pub _more: (),
}

impl Default for CacheOptions {
    fn default() -> CacheOptions {
        CacheOptions {
            folder: PathBuf::from("akunu-cache"),
            max_bytes: 20 << 30,
            _more: (),
        }
    }
}
