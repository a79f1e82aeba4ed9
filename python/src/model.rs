//! A model.

use std::ops::ControlFlow;
use std::path::PathBuf;

use akunu::{
    CancelFlag, CpuOptions, Device, EncodeOptions, GenerateOptions, KvFormat, ModelOptions,
    SessionOptions,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::chat::{self, Chat};
use crate::failure::raise;
use crate::options::Options;
use crate::reply::{End, Reply, TellText, likely};
use crate::stream::Stream;

/// Makes sure that a model lies below a folder; returns its path.
#[pyfunction]
pub fn fetch(py: Python<'_>, name: &str, folder: PathBuf) -> PyResult<PathBuf> {
    py.detach(|| akunu::fetch(name, folder)).map_err(raise)
}

/// A model on a device.
#[pyclass(module = "akunu._akunu", frozen)]
pub struct Model(akunu::Model);

#[pymethods]
impl Model {
    /// Opens a file or folder.
    #[new]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        device: &str,
        threads: Option<usize>,
        kv: &str,
    ) -> PyResult<Model> {
        let kv = match kv {
            "f16" => KvFormat::F16,
            "q8" => KvFormat::Q8,
            _ => return Err(PyValueError::new_err("kv is 'f16' or 'q8'")),
        };
        let cpu = CpuOptions {
            threads,
            ..CpuOptions::default()
        };
        let open = || {
            let device = Device::named(device, cpu)?;
            let options = ModelOptions {
                kv,
                ..ModelOptions::default()
            };
            akunu::Model::open_with(&path, device, options)
        };
        py.detach(open).map(Model).map_err(raise)
    }

    /// What it runs on.
    #[getter]
    fn device(&self) -> String {
        let (name, description) = self.0.device();
        format!("{name}: {description}")
    }

    /// The ids of a text.
    fn encode(&self, py: Python<'_>, text: &str, add_special: bool) -> Vec<u32> {
        let options = EncodeOptions {
            add_special,
            ..EncodeOptions::default()
        };
        py.detach(|| self.0.tokenizer().encode(text, options))
    }

    /// The text of some ids.
    fn decode(&self, py: Python<'_>, ids: Vec<u32>) -> String {
        py.detach(|| self.0.tokenizer().decode(&ids))
    }

    /// A conversation.
    #[pyo3(signature = (**options))]
    fn chat(&self, py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Chat> {
        chat::begin(&self.0, read(py, options)?)
    }

    /// Continues a text.
    #[pyo3(signature = (prompt, **options))]
    fn generate(
        &self,
        py: Python<'_>,
        prompt: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Reply> {
        let options = read(py, options)?;
        let cancel = CancelFlag::default();
        let wanted = GenerateOptions {
            cancel: cancel.clone(),
            ..self.wanted(&options).map_err(raise)?
        };
        let ids = self.0.tokenizer().encode(prompt, around());
        let begin = || -> Result<akunu::Session, akunu::Error> {
            let mut session = self.0.session(SessionOptions {
                context: options.context,
                ..SessionOptions::default()
            })?;
            session.set_adapters(&options.adapters(&self.0)?)?;
            Ok(session)
        };
        let mut session = begin().map_err(raise)?;
        let flag = cancel.clone();
        let stream = Stream::start(cancel, move |tell: &TellText| {
            session.feed_until(&ids, &flag, &mut |_| ControlFlow::Continue(()))?;
            let mut generation = session.generate(wanted)?;
            let mut tokens = Vec::new();
            while tell.is_wanted() {
                let next = generation.next().transpose()?;
                tokens.extend(next.as_ref().and_then(likely));
                match next {
                    Some(token) if token.text.is_empty() => {}
                    Some(token) => tell.piece(token.text),
                    None => {
                        let tail = generation.tail();
                        if !tail.is_empty() {
                            tell.piece(tail);
                        }
                        break;
                    }
                }
            }
            let stop = generation.stop();
            Ok(End { stop, tokens })
        })?;
        Ok(Reply(stream))
    }

    /// Continues many texts together.
    #[pyo3(signature = (prompts, **options))]
    fn generate_all(
        &self,
        py: Python<'_>,
        prompts: Vec<String>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Vec<(String, &'static str)>> {
        let options = read(py, options)?;
        let wanted = self.wanted(&options).map_err(raise)?;
        let session = SessionOptions {
            context: options.context,
            ..SessionOptions::default()
        };
        let answers = py.detach(|| {
            let encode = |text: &String| self.0.tokenizer().encode(text, around());
            let prompts: Vec<Vec<u32>> = prompts.iter().map(encode).collect();
            self.0.generate_all(&prompts, session, &wanted)
        });
        let answers = answers.map_err(raise)?.into_iter();
        Ok(answers
            .map(|answer| (answer.text, answer.stop.name()))
            .collect())
    }
}

/// With the tokens that a model expects around a text.
fn around() -> EncodeOptions {
    EncodeOptions {
        add_special: true,
        ..EncodeOptions::default()
    }
}

/// Options with the model that guesses.
fn read(py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
    let mut options = Options::read(options)?;
    if let Some(draft) = &options.draft_object {
        options.draft = Some(draft.bind(py).cast::<Model>()?.get().0.clone());
    }
    Ok(options)
}

impl Model {
    /// How a text is continued with these options.
    fn wanted(&self, options: &Options) -> Result<GenerateOptions, akunu::Error> {
        let default = GenerateOptions::default();
        Ok(GenerateOptions {
            max_tokens: options.max_tokens.unwrap_or(default.max_tokens),
            sampling: options.sampling.over(default.sampling),
            loop_window: options.loop_window(default.loop_window),
            stop: options.stop.clone(),
            logprobs: options.logprobs,
            grammar: options.grammar(&self.0)?,
            speculation: options.speculation(&self.0)?,
            ..default
        })
    }
}
