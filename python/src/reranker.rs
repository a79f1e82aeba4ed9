//! Documents, scored by how well they answer a question.

use std::path::PathBuf;

use akunu::{CpuOptions, Device};
use pyo3::prelude::*;

use crate::failure::raise;

/// A model that scores pairs of texts.
#[pyclass(module = "akunu._akunu", frozen)]
pub struct Reranker(akunu::Reranker);

#[pymethods]
impl Reranker {
    /// Opens a file or folder.
    #[new]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        device: &str,
        threads: Option<usize>,
    ) -> PyResult<Reranker> {
        let cpu = CpuOptions {
            threads,
            ..CpuOptions::default()
        };
        let open = || akunu::Reranker::open_on(&path, Device::named(device, cpu)?);
        py.detach(open).map(Reranker).map_err(raise)
    }

    /// The score of each document.
    fn scores(
        &self,
        py: Python<'_>,
        question: &str,
        documents: Vec<String>,
        strict: bool,
    ) -> PyResult<Vec<f32>> {
        let ranked = py.detach(|| self.0.rank(question, &documents, strict));
        let ranked = ranked.map_err(raise)?.into_iter();
        Ok(ranked.map(|document| document.score).collect())
    }
}
