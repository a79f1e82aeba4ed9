//! Akunu for Python: what `akunu/__init__.py` is a face of.
#![deny(unsafe_code)]

mod chat;
mod embedder;
mod failure;
mod lent;
mod model;
mod options;
mod reply;
mod reranker;
mod stream;
mod transcriber;

use pyo3::prelude::*;

/// The native part of the package `akunu`.
#[pymodule]
fn _akunu(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(model::fetch, module)?)?;
    module.add_class::<model::Model>()?;
    module.add_class::<chat::Chat>()?;
    module.add_class::<reply::Reply>()?;
    module.add_class::<embedder::Embedder>()?;
    module.add_class::<reranker::Reranker>()?;
    module.add_class::<transcriber::Transcriber>()?;
    module.add_class::<transcriber::Transcription>()
}
