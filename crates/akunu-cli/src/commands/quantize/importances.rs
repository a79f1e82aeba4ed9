//! The importance matrix of a conversion.

use crate::failure::Failure;
use akunu_gguf::{GgufHeader, ImportanceMatrix};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The importances of each tensor's columns, and where they come from.
pub struct Importances {
    path: PathBuf,
    matrix: ImportanceMatrix,
    means: HashMap<String, Vec<f32>>,
}

impl Importances {
    /// Reads a file of `imatrix` or llama.cpp.
    pub fn read(path: &Path) -> Result<Importances, Failure> {
        let matrix = ImportanceMatrix::open(path)?;
        let names = matrix.names().map(str::to_string);
        let means = names.filter_map(|name| Some((name.clone(), matrix.means(&name)?)));
        Ok(Importances {
            path: path.to_path_buf(),
            means: means.collect(),
            matrix,
        })
    }

    /// Those of a tensor, if there are any.
    pub fn of(&self, tensor: &str) -> Option<&[f32]> {
        self.means.get(tensor).map(Vec::as_slice)
    }

    /// Says in the file what was used, under llama.cpp's keys.
    pub fn describe(&self, header: &mut GgufHeader) {
        let path = self.path.display().to_string();
        header.set("quantize.imatrix.file", &path);
        if let Some(dataset) = self.matrix.datasets().first() {
            header.set("quantize.imatrix.dataset", dataset);
        }
        let n_entries = self.means.len() as u32;
        header.set("quantize.imatrix.entries_count", &n_entries);
        let n_chunks = self.matrix.n_chunks();
        header.set("quantize.imatrix.chunks_count", &n_chunks);
    }
}
