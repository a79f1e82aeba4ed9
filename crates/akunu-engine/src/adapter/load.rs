//! Adapters from their files.

use std::path::Path;
use std::sync::Arc;

use akunu_arch::{adapter_rows, check_adapter};
use akunu_gguf::{AdapterFile, AdapterPart};
use sha2::{Digest, Sha256};

use super::{Adapter, AdapterMatrices, Shared};
use crate::error::EngineError;
use crate::model::Model;

impl Model {
    /// Loads an adapter beside this model: a GGUF file, a folder as PEFT writes it, or the safetensors file in one.
    pub fn load_adapter(&self, path: impl AsRef<Path>) -> Result<Adapter, EngineError> {
        let file = AdapterFile::open(path.as_ref())?;
        check_adapter(self.config(), &file)?;
        let mut hash = Sha256::new();
        let mut products = Vec::with_capacity(file.parts().len());
        for part in file.parts() {
            let matrices = read(self, &file, part)?;
            hash.update(&matrices.weight);
            hash.update(bytemuck::cast_slice::<f32, u8>(&matrices.a));
            hash.update(bytemuck::cast_slice::<f32, u8>(&matrices.b));
            products.push(matrices);
        }
        let alive = Arc::new(());
        let slot = self.runtime().load_adapter(&products, &alive)?;
        Ok(Adapter(Arc::new(Shared {
            model: Arc::clone(self.loaded()),
            path: path.as_ref().to_path_buf(),
            slot,
            identity: hash.finalize().into(),
            _alive: alive,
        })))
    }
}

fn read(
    model: &Model,
    file: &AdapterFile,
    part: &AdapterPart,
) -> Result<AdapterMatrices, EngineError> {
    let [a, mut b] = file.read(part)?;
    b.iter_mut().for_each(|value| *value *= part.scaling);
    if let Some(rows) = adapter_rows(model.config(), file, part) {
        let row = |row: usize| b[row * part.rank..][..part.rank].iter().copied();
        b = rows.into_iter().flat_map(row).collect();
    }
    Ok(AdapterMatrices {
        weight: part.weight.clone(),
        rank: part.rank,
        a,
        b,
    })
}
