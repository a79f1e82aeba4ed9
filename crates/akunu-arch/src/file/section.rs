//! Typed look-ups in a section of `config.json`.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::ArchError;

/// A JSON object of a file, with errors that name both.
#[derive(Clone, Copy)]
pub(crate) struct Section<'a> {
    pub path: &'a Path,
    pub object: &'a Value,
}

impl<'a> Section<'a> {
    /// A value that is there and not null.
    pub fn get(&self, key: &str) -> Option<&'a Value> {
        self.object.get(key).filter(|value| !value.is_null())
    }

    /// An object within this one.
    pub fn section(&self, key: &str) -> Option<Section<'a>> {
        let object = self.get(key).filter(|value| value.is_object())?;
        Some(Section {
            path: self.path,
            object,
        })
    }

    pub fn u32(&self, key: &str) -> Result<Option<u32>, ArchError> {
        let wanted = "an integer from 0 to 2^32 - 1";
        self.typed(key, wanted, |value| u32::try_from(value.as_u64()?).ok())
    }

    pub fn f32(&self, key: &str) -> Result<Option<f32>, ArchError> {
        self.typed(key, "a number", |value| Some(value.as_f64()? as f32))
    }

    pub fn bool(&self, key: &str) -> Result<Option<bool>, ArchError> {
        self.typed(key, "true or false", Value::as_bool)
    }

    pub fn string(&self, key: &str) -> Result<Option<&'a str>, ArchError> {
        self.typed(key, "a string", Value::as_str)
    }

    pub fn required_u32(&self, key: &str) -> Result<u32, ArchError> {
        self.u32(key)?.ok_or_else(|| self.missing(key))
    }

    /// The first of these keys that has a value.
    pub fn first<T>(
        &self,
        keys: &[&str],
        read: impl Fn(&str) -> Result<Option<T>, ArchError>,
    ) -> Result<Option<T>, ArchError> {
        for key in keys {
            if let Some(value) = read(key)? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    pub fn missing(&self, key: &str) -> ArchError {
        ArchError::Missing {
            path: self.file(),
            key: key.to_string(),
        }
    }

    pub fn file(&self) -> PathBuf {
        self.path.to_path_buf()
    }

    fn typed<T>(
        &self,
        key: &str,
        wanted: &'static str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, ArchError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let invalid = || ArchError::Invalid {
            path: self.file(),
            key: key.to_string(),
            found: value.to_string().chars().take(40).collect(),
            wanted,
        };
        read(value).map(Some).ok_or_else(invalid)
    }
}
