//! Models by name.

use std::path::{Path, PathBuf};

use akunu_fetch::{DEFAULT_ENDPOINT, Hub, ModelName, Watch};

use crate::error::Error;

/// Downloads a model below `folder`, and returns the path for [`Model::open`](crate::Model::open).
///
/// `name` is one of the catalogue (`smollm2`, for example; a wrong one gets the list), or `hf:owner/repository/file.gguf`
/// for a file of Hugging Face. What is there already is not downloaded again, and what was downloaded has the hash that was
/// promised.
pub fn fetch(name: &str, folder: impl AsRef<Path>) -> Result<PathBuf, Error> {
    let name: ModelName = name.parse()?;
    Ok(name.install(folder.as_ref(), Hub::new(DEFAULT_ENDPOINT), &Silence)?)
}

struct Silence;

impl Watch for Silence {
    fn begin(&self, _: &str, _: u64) {}
    fn at(&self, _: u64) {}
    fn end(&self) {}
}
