//! Keyword arguments.

use std::path::PathBuf;

use akunu::{Adapters, DraftModel, Grammar, SamplingOptions, Speculation};
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
    pub logprobs: Option<u32>,
    form: Option<Form>,
    /// Files of adapters and their scales.
    lora: Vec<(PathBuf, f32)>,
    /// The model that guesses, as Python has it, and as it is.
    pub draft_object: Option<Py<PyAny>>,
    pub draft: Option<akunu::Model>,
}

/// The form that an answer must have.
enum Form {
    JsonSchema(String),
    Grammar(String),
    Regex(String),
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

    /// The form that answers of this model must have.
    pub fn grammar(&self, model: &akunu::Model) -> Result<Option<Grammar>, akunu::Error> {
        let Some(form) = &self.form else {
            return Ok(None);
        };
        Ok(Some(match form {
            Form::JsonSchema(text) => Grammar::json_schema(model, text)?,
            Form::Grammar(text) => Grammar::context_free(model, text)?,
            Form::Regex(text) => Grammar::regex(model, text)?,
        }))
    }

    /// The adapters, loaded for this model.
    pub fn adapters(&self, model: &akunu::Model) -> Result<Adapters, akunu::Error> {
        let mut adapters = Adapters::none();
        for (path, scale) in &self.lora {
            adapters = adapters.with(&model.load_adapter(path)?, *scale);
        }
        Ok(adapters)
    }

    /// How tokens are guessed for this model.
    pub fn speculation(&self, model: &akunu::Model) -> Result<Speculation, akunu::Error> {
        let draft = self.draft.as_ref();
        Ok(Speculation {
            draft: draft
                .map(|draft| DraftModel::new(model, draft))
                .transpose()?,
            ..Speculation::default()
        })
    }

    fn set(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        match name {
            "system" => self.system = Some(value.extract()?),
            "stop" => {
                // A str would also be extracted as a list of characters.
                self.stop = match value.extract::<String>() {
                    Ok(text) => vec![text],
                    Err(_) => value.extract()?,
                }
            }
            "json_schema" => self.form = Some(Form::JsonSchema(value.extract()?)),
            "grammar" => self.form = Some(Form::Grammar(value.extract()?)),
            "regex" => self.form = Some(Form::Regex(value.extract()?)),
            "logprobs" => self.logprobs = Some(value.extract()?),
            "lora" => self.lora = value.extract()?,
            "draft" => self.draft_object = Some(value.clone().unbind()),
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
