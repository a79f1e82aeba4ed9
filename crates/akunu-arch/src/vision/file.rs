//! The description of a vision tower, in either container.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use akunu_gguf::{Container, GgufFile, WeightStore};
use serde_json::Value;

use crate::error::ArchError;
use crate::file::{Key, ModelFile, Said, Section};
use crate::rope::Pairing;

/// How keys of a tower begin in GGUF metadata.
const PREFIX: &str = "clip.vision";
/// A preprocessor's config has a few kilobytes.
const MAX_BYTES: u64 = 1 << 20;
/// The files that say how images are normalised, the first that is there counts.
const PREPROCESSORS: [&str; 2] = ["processor_config.json", "preprocessor_config.json"];

/// The description of a tower.
pub(super) struct TowerFile<'a> {
    /// The numbers of the tower: `clip.vision.*`, or `vision_config`.
    pub tower: ModelFile<'a>,
    whole: Whole<'a>,
}

/// The description that the tower is a part of.
enum Whole<'a> {
    Metadata(&'a GgufFile),
    Config(Section<'a>),
}

impl<'a> TowerFile<'a> {
    /// The tower of a GGUF file of llama.cpp's `mmproj`.
    pub fn of_metadata(store: &'a WeightStore, file: &'a GgufFile) -> TowerFile<'a> {
        TowerFile {
            tower: model_file(store, Said::Metadata(file)),
            whole: Whole::Metadata(file),
        }
    }

    /// The tower of a folder, whose config is `whole` and has the tower's in `vision`.
    pub fn of_config(
        store: &'a WeightStore,
        whole: Section<'a>,
        vision: Section<'a>,
    ) -> TowerFile<'a> {
        TowerFile {
            tower: model_file(store, Said::Config(vision)),
            whole: Whole::Config(whole),
        }
    }

    /// The config of the whole model; `None` in a GGUF file.
    pub fn config(&self) -> Option<Section<'a>> {
        match self.whole {
            Whole::Metadata(_) => None,
            Whole::Config(section) => Some(section),
        }
    }

    /// A flag of the metadata; `None` if it is not there, or in a folder.
    pub fn metadata_flag(&self, key: &str) -> Result<Option<bool>, ArchError> {
        match self.whole {
            Whole::Metadata(file) => Ok(file.metadata().bool(key)?),
            Whole::Config(_) => Ok(None),
        }
    }

    /// Flags of the metadata; none if they are not there, or in a folder.
    pub fn metadata_flags(&self, key: &str) -> Result<Vec<bool>, ArchError> {
        match self.whole {
            Whole::Metadata(file) => {
                let flags = file.metadata().bools(key)?;
                Ok(flags.map(Iterator::collect).unwrap_or_default())
            }
            Whole::Config(_) => Ok(Vec::new()),
        }
    }

    /// A size of the tower, which must be there unless there is a default for folders: `transformers` leaves out of a config
    /// what is as it usually is.
    pub fn size(&self, key: Key, default: Option<u32>, most: u32) -> Result<u32, ArchError> {
        let usual = default.filter(|_| self.config().is_some());
        let found = self.tower.u32(key)?.or(usual);
        let found = found.ok_or_else(|| self.tower.missing(key))?;
        self.tower
            .check_size(&self.tower.key_name(key), found, most)?;
        Ok(found)
    }

    /// Width of the language model that reads the rows.
    pub fn out_dim(&self) -> Result<u32, ArchError> {
        const KEY: Key = Key::new(&["projection_dim"], &[]);
        const MOST: u32 = 1 << 20;
        let Some(config) = self.config() else {
            return self.size(KEY, None, MOST);
        };
        let text = config.section("text_config").unwrap_or(config);
        let found = text.required_u32("hidden_size")?;
        self.tower
            .check_size("text_config.hidden_size", found, MOST)?;
        Ok(found)
    }

    /// Mean and standard deviation of the pixels, `[mean, std]`; `usual` for folders without a preprocessor's config.
    pub fn normalisation(&self, usual: f32) -> Result<[[f32; 3]; 2], ArchError> {
        let (mean, std) = ("image_mean", "image_std");
        match self.whole {
            Whole::Metadata(file) => {
                let numbers = |name: &str| -> Result<Vec<f32>, ArchError> {
                    let key = format!("{PREFIX}.{name}");
                    let numbers = file.metadata().f32s(&key)?;
                    let numbers = numbers.ok_or_else(|| file.metadata().missing(&key))?;
                    Ok(numbers.collect())
                };
                Ok([
                    self.three(mean, numbers(mean)?, f32::MIN)?,
                    self.three(std, numbers(std)?, 0.0)?,
                ])
            }
            Whole::Config(_) => {
                let config = self.preprocessor()?;
                let numbers = |name: &str| {
                    let list = config.as_ref().and_then(|config| config[name].as_array());
                    list.map_or(vec![usual; 3], |list| {
                        let numbers = list.iter().filter_map(Value::as_f64);
                        numbers.map(|number| number as f32).collect()
                    })
                };
                Ok([
                    self.three(mean, numbers(mean), f32::MIN)?,
                    self.three(std, numbers(std), 0.0)?,
                ])
            }
        }
    }

    /// Three finite numbers above `least`.
    fn three(&self, key: &str, found: Vec<f32>, least: f32) -> Result<[f32; 3], ArchError> {
        let is_usable = |number: &f32| number.is_finite() && *number > least;
        match <[f32; 3]>::try_from(&found[..]) {
            Ok(numbers) if numbers.iter().all(is_usable) => Ok(numbers),
            _ => Err(self.tower.invalid(
                key,
                format!("{found:?}"),
                "three finite numbers for red, green and blue, those of image_std above 0",
            )),
        }
    }

    /// The image preprocessor's config, if the folder has one.
    fn preprocessor(&self) -> Result<Option<Value>, ArchError> {
        let Container::Folder(folder) = self.tower.store.container() else {
            return Ok(None);
        };
        for name in PREPROCESSORS {
            let path = folder.path().join(name);
            let Ok(file) = File::open(&path) else {
                continue;
            };
            let mut config = read_json(file, &path)?;
            if let Some(images) = config.get_mut("image_processor") {
                config = images.take();
            }
            if config.get("image_mean").is_some() {
                return Ok(Some(config));
            }
        }
        Ok(None)
    }
}

fn model_file<'a>(store: &'a WeightStore, said: Said<'a>) -> ModelFile<'a> {
    ModelFile {
        store,
        arch: PREFIX,
        pairing: Pairing::SplitHalves,
        said,
    }
}

fn read_json(file: File, path: &Path) -> Result<Value, ArchError> {
    let unreadable = |why: String| ArchError::File {
        path: path.to_path_buf(),
        why,
    };
    let mut text = String::new();
    let mut limited = file.take(MAX_BYTES);
    limited
        .read_to_string(&mut text)
        .map_err(|error| unreadable(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))
}
