//! A model's own description, in either container: GGUF metadata or `config.json`.

mod images;
pub(crate) mod keys;
mod long_rope;
mod number;
mod rope;
mod section;
mod windows;

use std::path::Path;

use akunu_gguf::{GgufFile, Value, WeightStore};

use crate::error::ArchError;
use crate::rope::Pairing;
pub use keys::Key;
pub(crate) use section::Section;
pub use windows::WindowPattern;

/// The description of an open model whose architecture is known.
pub struct ModelFile<'a> {
    /// Its weights.
    pub store: &'a WeightStore,
    /// The architecture's name in GGUF files.
    pub arch: &'static str,
    /// Which elements of a head turn together in its GGUF files.
    pub pairing: Pairing,
    pub(crate) said: Said<'a>,
}

/// Where the description is.
#[derive(Clone, Copy)]
pub(crate) enum Said<'a> {
    /// In the metadata of a GGUF file, under keys that begin with the architecture's name.
    Metadata(&'a GgufFile),
    /// In `config.json`.
    Config(Section<'a>),
}

impl<'a> ModelFile<'a> {
    /// The file that has the description.
    pub fn path(&self) -> &'a Path {
        match self.said {
            Said::Metadata(file) => file.path(),
            Said::Config(section) => section.path,
        }
    }

    /// `config.json`; `None` in a GGUF file.
    pub(crate) fn config(&self) -> Option<Section<'a>> {
        match self.said {
            Said::Metadata(_) => None,
            Said::Config(section) => Some(section),
        }
    }

    /// A whole number; `None` if the file does not have it.
    pub fn u32(&self, key: Key) -> Result<Option<u32>, ArchError> {
        match self.said {
            Said::Metadata(file) => self.first(key, |name| Ok(file.metadata().u32(name)?)),
            Said::Config(section) => section.first(key.config, |name| section.u32(name)),
        }
    }

    /// A number.
    pub fn f32(&self, key: Key) -> Result<Option<f32>, ArchError> {
        match self.said {
            Said::Metadata(file) => self.first(key, |name| Ok(file.metadata().f32(name)?)),
            Said::Config(section) => section.first(key.config, |name| section.f32(name)),
        }
    }

    /// A flag.
    pub fn bool(&self, key: Key) -> Result<Option<bool>, ArchError> {
        match self.said {
            Said::Metadata(file) => self.first(key, |name| Ok(file.metadata().bool(name)?)),
            Said::Config(section) => section.first(key.config, |name| section.bool(name)),
        }
    }

    /// A whole number that the file must have.
    pub fn required(&self, key: Key) -> Result<u32, ArchError> {
        self.u32(key)?.ok_or_else(|| self.missing(key))
    }

    /// A number for each layer: a list, or one number for all of them.
    pub fn of_layers(&self, key: Key, n_layers: usize) -> Result<Option<Vec<u32>>, ArchError> {
        let list: Option<Vec<Option<u32>>> = match self.said {
            Said::Metadata(file) => {
                let mut names = key.gguf.iter();
                let list = names.find_map(|name| match file.metadata().get(&self.name(name))? {
                    Value::Array(array) => Some(array),
                    _ => None,
                });
                list.map(|list| {
                    let number = |value: Value| u32::try_from(value.as_integer()?).ok();
                    list.iter().take(n_layers).map(number).collect()
                })
            }
            Said::Config(section) => {
                let mut names = key.config.iter();
                let list = names.find_map(|name| section.get(name)?.as_array());
                list.map(|list| {
                    let number = |value: &serde_json::Value| u32::try_from(value.as_u64()?).ok();
                    list.iter().take(n_layers).map(number).collect()
                })
            }
        };
        let Some(list) = list else {
            return Ok(self.u32(key)?.map(|number| vec![number; n_layers]));
        };
        let found = list.len();
        let numbers: Option<Vec<u32>> = list.into_iter().collect();
        match numbers.filter(|_| found == n_layers) {
            Some(numbers) => Ok(Some(numbers)),
            None => Err(ArchError::Invalid {
                path: self.path().to_path_buf(),
                key: self.key_name(key),
                found: format!("a list of {found} for {n_layers} layers"),
                wanted: "a number for each layer",
            }),
        }
    }

    /// How many layers a plain decoder has. The blocks that guess further tokens are the last ones; `config.json` does not count
    /// them, and some have only a list with the kind of each layer.
    pub fn n_layers(&self) -> Result<usize, ArchError> {
        let listed = || {
            let kinds = self.config()?.get(keys::LAYER_KINDS)?.as_array()?;
            u32::try_from(kinds.len()).ok()
        };
        let n_all = self.u32(keys::LAYERS)?.or_else(listed);
        let n_all = n_all.ok_or_else(|| self.missing(keys::LAYERS))?;
        let n_guessing = self.u32(keys::GUESSING_LAYERS)?.unwrap_or(0);
        let n_layers = n_all.saturating_sub(n_guessing);
        self.check_size("layers", n_layers, 1 << 12)?;
        Ok(n_layers as usize)
    }

    /// Rows of a tensor that a model may do without.
    pub fn rows(&self, name: &str) -> u32 {
        let rows = self.store.tensor(name).map_or(0, |table| table.rows());
        u32::try_from(rows).unwrap_or(u32::MAX)
    }

    /// Rows of the token embedding, which every model has.
    pub fn vocab_size(&self, name: &str) -> Result<u32, ArchError> {
        if self.store.tensor(name).is_none() {
            return Err(ArchError::Missing {
                path: self.path().to_path_buf(),
                key: self.store.tensor_names(name).join("` or `"),
            });
        }
        let rows = self.rows(name);
        self.check_size("vocabulary", rows, 1 << 24)?;
        Ok(rows)
    }

    /// The error of a key that the file must have.
    pub fn missing(&self, key: Key) -> ArchError {
        match self.said {
            Said::Metadata(file) => file.metadata().missing(&self.key_name(key)).into(),
            Said::Config(section) => section.missing(&self.key_name(key)),
        }
    }

    /// The error of a feature that a model asks for and its architecture does not have.
    pub fn unsupported(&self, what: String) -> ArchError {
        let path = self.path().to_path_buf();
        ArchError::Unsupported { path, what }
    }

    /// Refuses a `config.json` that says anything else of this key.
    pub fn only(&self, key: &str, usual: &str) -> Result<(), ArchError> {
        let Some(section) = self.config() else {
            return Ok(());
        };
        match section.string(key)?.filter(|found| *found != usual) {
            None => Ok(()),
            Some(found) => Err(self.unsupported(format!(
                "`{key}` = `{found}` in the architecture `{}`",
                self.arch
            ))),
        }
    }

    /// Refuses a `config.json` in which one of these is true.
    pub fn never(&self, keys: &[&str]) -> Result<(), ArchError> {
        let Some(section) = self.config() else {
            return Ok(());
        };
        let is_true =
            |key: &&&str| section.get(key).and_then(|value| value.as_bool()) == Some(true);
        match keys.iter().find(is_true) {
            None => Ok(()),
            Some(key) => {
                let arch = self.arch;
                Err(self.unsupported(format!("`{key}` in the architecture `{arch}`")))
            }
        }
    }

    /// The whole name of a key of the metadata.
    fn name(&self, key: &str) -> String {
        format!("{}.{key}", self.arch)
    }

    /// How this container calls a key.
    pub fn key_name(&self, key: Key) -> String {
        let first = |names: &[&str]| names.first().copied().unwrap_or_default().to_string();
        match self.said {
            Said::Metadata(_) => self.name(&first(key.gguf)),
            Said::Config(_) => first(key.config),
        }
    }

    /// The first of a key's names in the metadata that has a value.
    fn first<T>(
        &self,
        key: Key,
        read: impl Fn(&str) -> Result<Option<T>, ArchError>,
    ) -> Result<Option<T>, ArchError> {
        for name in key.gguf {
            if let Some(value) = read(&self.name(name))? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }
}
