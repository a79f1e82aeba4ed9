//! A model.

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
use crate::reply::{Reply, TellText};
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
        let cpu = CpuOptions { threads, ..CpuOptions::default() };
        let open = || {
            let device = Device::named(device, cpu)?;
            let options = ModelOptions { kv, ..ModelOptions::default() };
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
            parse_special: false,
        };
        py.detach(|| self.0.tokenizer().encode(text, options))
    }

    /// The text of some ids.
    fn decode(&self, py: Python<'_>, ids: Vec<u32>) -> String {
        py.detach(|| self.0.tokenizer().decode(&ids))
    }

    /// A conversation.
    #[pyo3(signature = (**options))]
    fn chat(&self, options: Option<&Bound<'_, PyDict>>) -> PyResult<Chat> {
        chat::begin(&self.0, Options::read(options)?)
    }

    /// Continues a text.
    #[pyo3(signature = (prompt, **options))]
    fn generate(&self, prompt: &str, options: Option<&Bound<'_, PyDict>>) -> PyResult<Reply> {
        let options = Options::read(options)?;
        let cancel = CancelFlag::default();
        let default = GenerateOptions::default();
        let wanted = GenerateOptions {
            max_tokens: options.max_tokens.unwrap_or(default.max_tokens),
            sampling: options.sampling.over(default.sampling),
            loop_window: options.loop_window(default.loop_window),
            stop: options.stop,
            cancel: cancel.clone(),
            ..default
        };
        let encode = EncodeOptions {
            add_special: true,
            parse_special: false,
        };
        let ids = self.0.tokenizer().encode(prompt, encode);
        let session = self.0.session(SessionOptions {
            context: options.context,
            ..SessionOptions::default()
        });
        let mut session = session.map_err(raise)?;
        let stream = Stream::start(cancel, move |tell: &TellText| {
            session.feed(&ids)?;
            let mut generation = session.generate(wanted)?;
            for token in generation.by_ref() {
                let text = token?.text;
                if !text.is_empty() && !tell.piece(text) {
                    return Ok(None);
                }
            }
            let tail = generation.tail();
            if !tail.is_empty() && !tell.piece(tail) {
                return Ok(None);
            }
            Ok(generation.stop())
        })?;
        Ok(Reply(stream))
    }
}
