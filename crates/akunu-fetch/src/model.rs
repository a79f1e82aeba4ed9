//! Models by their names.

use crate::catalogue::{Asset, AssetModel, Catalogue};
use crate::error::FetchError;
use crate::hub::Hub;
use crate::hub_file::HubFile;
use crate::install::{Order, install};
use crate::registry::Sources;
use crate::watch::Watch;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A model that can be fetched: one of the [`Catalogue`] by its name, or a file of a hub as `hf:owner/repository/file.gguf`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ModelName {
    /// An asset of the catalogue: a single file, or a folder with safetensors.
    Catalogue(Asset),
    /// A file of a hub, by its own name or by a short one of the catalogue.
    Hub(HubFile),
}

impl FromStr for ModelName {
    type Err = FetchError;

    fn from_str(name: &str) -> Result<ModelName, FetchError> {
        if name.starts_with("hf:") {
            return name.parse().map(ModelName::Hub);
        }
        let catalogue = Catalogue::embedded()?;
        if let Some(model) = catalogue.hub_model(name) {
            return Ok(ModelName::Hub(model.hub.clone()));
        }
        match catalogue.get(name) {
            Some(asset) if asset.model().is_some() => Ok(ModelName::Catalogue(asset.clone())),
            Some(_) => Err(FetchError::NotAModel(name.to_owned())),
            None => Err(FetchError::UnknownModel {
                name: name.to_owned(),
                known: catalogue
                    .models()
                    .map(|model| model.name)
                    .collect::<Vec<_>>()
                    .join(", "),
            }),
        }
    }
}

impl ModelName {
    /// Installs the model below `root`, unless it is there, and returns its file or folder.
    pub fn install(&self, root: &Path, hub: Hub, watch: &dyn Watch) -> Result<PathBuf, FetchError> {
        let asset = match self {
            ModelName::Hub(file) => return hub.install(file, root, watch),
            ModelName::Catalogue(asset) => asset,
        };
        let order = Order {
            source: &Sources { hub: Some(hub) },
            watch,
            force: false,
        };
        install(asset, root, &order)?;
        let folder = root.join(&asset.name);
        Ok(match asset.model() {
            Some(AssetModel::File(file)) => folder.join(file),
            Some(AssetModel::Folder) | None => folder,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when a wrong name is taken for a model, or the error does not say which names there are.
    #[test]
    fn a_name_that_is_no_model_is_told() {
        let parse = |name: &str| name.parse::<ModelName>();
        let unknown = parse("smollm3").expect_err("no such name").to_string();
        assert!(unknown.contains("`smollm3`") && unknown.contains("smollm2"));
        let tokenizer = parse("tokenizer-qwen3").expect_err("not a model");
        assert!(matches!(tokenizer, FetchError::NotAModel(name) if name == "tokenizer-qwen3"));
        assert!(matches!(parse("smollm2"), Ok(ModelName::Catalogue(_))));
        assert!(matches!(parse("hf:a/b/c.gguf"), Ok(ModelName::Hub(_))));
    }

    /// Breaks when a model of a hub is fetched twice, once under each of its names.
    #[test]
    fn a_short_name_and_the_hubs_own_mean_the_same_file() {
        let long = "hf:Qwen/Qwen3-4B-GGUF/Qwen3-4B-Q4_K_M.gguf";
        for name in ["qwen3-4b", long] {
            let parsed: ModelName = name.parse().expect("a good name");
            assert!(matches!(&parsed, ModelName::Hub(file) if file.to_string() == long));
        }
    }
}
