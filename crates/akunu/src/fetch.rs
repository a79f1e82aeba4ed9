//! Models by name.

use std::path::{Path, PathBuf};

use akunu_engine::SamplingOptions;
use akunu_fetch::{Catalogue, DEFAULT_ENDPOINT, Hub, ModelName, SamplingValues, Watch};

use crate::error::Error;

/// Downloads a model below `folder`, and returns the path for [`Model::open`](crate::Model::open).
///
/// `name` is one of the catalogue (`smollm2`, for example; a wrong one gets the list), or `hf:owner/repository/file.gguf`
/// for a file of Hugging Face. What is there already is not downloaded again, and what was downloaded has the hash that was
/// promised.
///
/// ```no_run
/// let path = akunu::fetch("smollm2", "models")?;
/// let model = akunu::Model::open(path)?;
/// # Ok::<(), akunu::Error>(())
/// ```
pub fn fetch(name: &str, folder: impl AsRef<Path>) -> Result<PathBuf, Error> {
    let name: ModelName = name.parse()?;
    Ok(name.install(folder.as_ref(), Hub::new(DEFAULT_ENDPOINT), &Silence)?)
}

/// The sampling that the authors of the model at this path recommend, if it is one of the catalogue.
pub(crate) fn recommended_sampling(path: &Path) -> SamplingOptions {
    let catalogue = Catalogue::embedded().ok();
    let found = catalogue.as_ref().and_then(|all| all.recognise(path));
    // A test sets every value of the catalogue, so none is refused here.
    found.map_or_else(SamplingOptions::default, |model| {
        options(model.sampling).unwrap_or_default()
    })
}

fn options(values: &SamplingValues) -> Result<SamplingOptions, akunu_engine::EngineError> {
    let mut options = SamplingOptions::default();
    for (name, value) in values {
        options.set(name, *value)?;
    }
    Ok(options)
}

struct Silence;

impl Watch for Silence {
    fn begin(&self, _: &str, _: u64) {}
    fn at(&self, _: u64) {}
    fn end(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, Model, ModelOptions};

    /// Fails on a typing error in the catalogue: a name that no option has, or a value out of its range.
    #[test]
    fn every_recommendation_of_the_catalogue_can_be_set() {
        let catalogue = Catalogue::embedded().expect("the catalogue is valid");
        let mut n_set = 0;
        for model in catalogue.models() {
            let set = options(model.sampling).unwrap_or_else(|e| panic!("{}: {e}", model.name));
            n_set += usize::from(set != SamplingOptions::default());
        }
        assert!(n_set >= 10, "only {n_set} models have any");
    }

    /// Breaks when the catalogue's values do not reach whoever opens the model, or win over the caller's.
    #[test]
    fn a_model_of_the_catalogue_is_opened_with_its_authors_sampling() {
        let path = akunu_assets::path("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf");
        let opened = |options| {
            let model = Model::open_with(&path, Device::Cpu(Default::default()), options);
            *model.expect("a model").suggested_sampling()
        };
        let known = opened(ModelOptions::default());
        assert_eq!((known.temperature, known.top_p), (Some(0.2), Some(0.9)));
        let suggested = SamplingOptions {
            temperature: Some(0.5),
            ..SamplingOptions::default()
        };
        let mine = opened(ModelOptions {
            suggested,
            ..ModelOptions::default()
        });
        assert_eq!((mine.temperature, mine.top_p), (Some(0.5), Some(0.9)));
    }
}
