//! Keyword arguments.

use akunu::Sampling;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What may be said of a conversation or an answer.
#[derive(Default)]
pub struct Options {
    pub system: Option<String>,
    pub stop: Vec<String>,
    pub context: Option<u32>,
    pub max_tokens: Option<usize>,
    temperature: Option<f32>,
    top_k: Option<u32>,
    top_p: Option<f32>,
    min_p: Option<f32>,
    repetition_penalty: Option<f32>,
    seed: Option<u64>,
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

    fn set(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        match name {
            "system" => self.system = Some(value.extract()?),
            "stop" => self.stop = value.extract()?,
            "context" => self.context = Some(value.extract()?),
            "max_tokens" => self.max_tokens = Some(value.extract()?),
            "temperature" => self.temperature = Some(value.extract()?),
            "top_k" => self.top_k = Some(value.extract()?),
            "top_p" => self.top_p = Some(value.extract()?),
            "min_p" => self.min_p = Some(value.extract()?),
            "repetition_penalty" => self.repetition_penalty = Some(value.extract()?),
            "seed" => self.seed = Some(value.extract()?),
            _ => {
                let text = format!("unexpected keyword argument '{name}'");
                return Err(PyTypeError::new_err(text));
            }
        }
        Ok(())
    }

    /// How tokens are chosen, where it would be `sampling` without arguments.
    pub fn sampling(&self, sampling: Sampling) -> Sampling {
        Sampling {
            temperature: self.temperature.unwrap_or(sampling.temperature),
            top_k: self.top_k.unwrap_or(sampling.top_k),
            top_p: self.top_p.unwrap_or(sampling.top_p),
            min_p: self.min_p.unwrap_or(sampling.min_p),
            repetition_penalty: self
                .repetition_penalty
                .unwrap_or(sampling.repetition_penalty),
            seed: self.seed.unwrap_or(sampling.seed),
            ..sampling
        }
    }
}
