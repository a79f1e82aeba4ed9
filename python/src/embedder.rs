//! Texts as vectors.

use std::path::PathBuf;

use akunu::{CpuOptions, Device, EmbedOptions};
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use crate::failure::raise;

/// A model that turns texts into vectors.
#[pyclass(module = "akunu._akunu", frozen)]
pub struct Embedder(akunu::Embedder);

#[pymethods]
impl Embedder {
    /// Opens a file or folder.
    #[new]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        device: &str,
        threads: Option<usize>,
    ) -> PyResult<Embedder> {
        let cpu = CpuOptions {
            threads,
            ..CpuOptions::default()
        };
        let open = || akunu::Embedder::open_on(&path, Device::named(device, cpu)?);
        py.detach(open).map(Embedder).map_err(raise)
    }

    /// Numbers of a vector.
    #[getter]
    fn dimensions(&self) -> usize {
        self.0.dimensions()
    }

    /// Tokens of a text that the model looks at.
    #[getter]
    fn max_tokens(&self) -> usize {
        self.0.max_tokens()
    }

    /// The vectors as floats in memory, one behind the other, and how many floats each of them has.
    fn embed<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<String>,
        dimensions: Option<usize>,
        strict: bool,
    ) -> PyResult<(Bound<'py, PyByteArray>, usize)> {
        let options = EmbedOptions {
            dimensions,
            strict,
            ..EmbedOptions::default()
        };
        let embed = || -> Result<Vec<u8>, akunu::Error> {
            let embeddings = self.0.embed_with(&texts, options)?;
            let numbers = embeddings.iter().flat_map(|made| &made.vector);
            Ok(numbers.flat_map(|x| x.to_ne_bytes()).collect())
        };
        let bytes = py.detach(embed).map_err(raise)?;
        let width = dimensions.unwrap_or(self.0.dimensions());
        Ok((PyByteArray::new(py, &bytes), width))
    }
}
