//! Errors, as Python sees them.

use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::PyException;

create_exception!(
    akunu,
    Error,
    PyException,
    "A model cannot be opened, or an answer cannot be given; the text says why."
);

/// An error of the engine.
pub fn raise(error: impl Into<akunu::Error>) -> PyErr {
    Error::new_err(error.into().to_string())
}
