//! Errors, as Python sees them: the classes of `akunu/errors.py`.

use akunu::ErrorKind;
use pyo3::PyErr;

/// The classes, looked up when an error is raised.
mod classes {
    pyo3::import_exception!(akunu.errors, Error);
    pyo3::import_exception!(akunu.errors, Busy);
    pyo3::import_exception!(akunu.errors, ContextFull);
    pyo3::import_exception!(akunu.errors, DeviceError);
    pyo3::import_exception!(akunu.errors, DownloadError);
    pyo3::import_exception!(akunu.errors, InvalidArgument);
    pyo3::import_exception!(akunu.errors, ModelNotFound);
    pyo3::import_exception!(akunu.errors, OutOfMemory);
    pyo3::import_exception!(akunu.errors, UnsupportedModel);
}

pub use classes::{Busy, Error};

/// An error of the engine.
pub fn raise(error: impl Into<akunu::Error>) -> PyErr {
    let error = error.into();
    let text = error.to_string();
    match error.kind() {
        ErrorKind::NotFound => classes::ModelNotFound::new_err(text),
        ErrorKind::UnsupportedModel => classes::UnsupportedModel::new_err(text),
        ErrorKind::ContextFull => classes::ContextFull::new_err(text),
        ErrorKind::OutOfMemory => classes::OutOfMemory::new_err(text),
        ErrorKind::Device => classes::DeviceError::new_err(text),
        ErrorKind::InvalidArgument => classes::InvalidArgument::new_err(text),
        ErrorKind::Download => classes::DownloadError::new_err(text),
        _ => Error::new_err(text),
    }
}
