//! Akunu for Python: what `akunu/__init__.py` is a face of.
#![deny(unsafe_code)]

mod chat;
mod failure;
mod model;
mod options;
mod reply;

use pyo3::prelude::*;

/// The native part of the package `akunu`.
#[pymodule]
fn _akunu(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Error", module.py().get_type::<failure::Error>())?;
    module.add_function(wrap_pyfunction!(model::fetch, module)?)?;
    module.add_class::<model::Model>()?;
    module.add_class::<chat::Chat>()?;
    module.add_class::<reply::Reply>()
}
