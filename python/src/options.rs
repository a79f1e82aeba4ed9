//! Keyword arguments.

use akunu::SamplingOptions;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What may be said of a conversation or an answer.
#[derive(Default)]
pub struct Options {
    pub system: Option<String>,
    pub stop: Vec<String>,
    pub context: Option<u32>,
    pub max_tokens: Option<usize>,
    loop_window: Option<u32>,
    loop_stop: Option<bool>,
    pub sampling: SamplingOptions,
}

impl Options {
    /// Reads keyword arguments; `None` stands for one that was not given.
    pub fn read(arguments: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
        let mut options = Options::default();
        for (name, value) in arguments.into_iter().flatten() {
            if !value.is_none() {
                options.set(&name.extract::<String>()?, &value)?;
            }
        }
        Ok(options)
    }

    /// After how many repeated tokens an answer ends, over what holds by default.
    pub fn loop_window(&self, default: Option<u32>) -> Option<u32> {
        match self.loop_stop {
            Some(false) => None,
            Some(true) => Some(self.loop_window.or(default).unwrap_or(akunu::LOOP_WINDOW)),
            None => self.loop_window.or(default),
        }
    }

    fn set(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        match name {
            "system" => self.system = Some(value.extract()?),
            "stop" => self.stop = value.extract()?,
            "context" => self.context = Some(value.extract()?),
            "max_tokens" => self.max_tokens = Some(value.extract()?),
            "loop_window" => self.loop_window = Some(value.extract()?),
            "loop_stop" => self.loop_stop = Some(value.extract()?),
            // Not all of its numbers are exact as floats.
            "seed" => self.sampling.seed = Some(value.extract()?),
            _ if SamplingOptions::NAMES.contains(&name) => {
                let set = self.sampling.set(name, value.extract()?);
                set.map_err(|error| PyValueError::new_err(error.to_string()))?;
            }
            _ => {
                let text = format!("unexpected keyword argument '{name}'");
                return Err(PyTypeError::new_err(text));
            }
        }
        Ok(())
    }
}
