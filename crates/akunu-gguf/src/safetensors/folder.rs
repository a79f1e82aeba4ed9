//! A model folder as Hugging Face and MLX lay it out.
//!
//! `config.json`, and either `model.safetensors`, or `model.safetensors.index.json` with the files
//! that it names, or any `model*.safetensors`.

use super::converted::Converted;
use super::error::{FolderError, FolderProblem};
use super::float::FloatTensor;
use super::header::{SafetensorInfo, read_safetensors_header};
use super::mlx::MlxTensor;
use super::quantization::Quantization;
use super::weights::{
    AffineParts, FloatParts, FolderWeight, MethodParts, QuantizedParts, TensorList,
};
use crate::index::NameIndex;
use crate::mmap::FileBytes;
use crate::span::Span;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const CONFIG: &str = "config.json";
const INDEX: &str = "model.safetensors.index.json";
/// Real configs have a few kilobytes; one with an entry for each layer some hundred.
const MAX_CONFIG_BYTES: usize = 4 << 20;
/// Real indices have some megabytes.
const MAX_INDEX_BYTES: usize = 64 << 20;

/// An open model folder. Tensors are borrowed from the mapped files.
#[derive(Debug)]
pub struct ModelFolder {
    path: PathBuf,
    config: Value,
    quantization: Option<Quantization>,
    parts: Vec<Arc<FileBytes>>,
    tensors: Vec<SafetensorInfo>,
    index: NameIndex,
    weights: Vec<FolderWeight>,
}

#[derive(Deserialize)]
struct ShardIndex {
    weight_map: BTreeMap<String, String>,
}

impl ModelFolder {
    /// Opens a folder and checks the headers of all of its files.
    pub fn open(path: impl AsRef<Path>) -> Result<ModelFolder, FolderError> {
        let path = path.as_ref();
        let config_path = path.join(CONFIG);
        if path.is_dir() && !config_path.exists() {
            return Err(FolderProblem::NotAModel.in_file(path));
        }
        let config: Value = read_json(&config_path, MAX_CONFIG_BYTES)?;
        let quantization =
            Quantization::from_config(&config).map_err(|problem| problem.in_file(config_path))?;
        let (files, shard_index) = weight_files(path)?;
        let mut parts = Vec::with_capacity(files.len());
        let mut tensors = Vec::new();
        for (part, file) in files.iter().enumerate() {
            let (bytes, listed) = open_part(&path.join(file))?;
            parts.push(Arc::new(bytes));
            tensors.extend(
                listed
                    .into_iter()
                    .map(|tensor| SafetensorInfo { part, ..tensor }),
            );
        }
        let in_folder = |problem: FolderProblem| problem.in_file(path);
        let index = NameIndex::build(&tensors, |tensor| &tensor.name)
            .map_err(|name| in_folder(FolderProblem::DuplicateTensor { name }))?;
        let list = TensorList {
            tensors: &tensors,
            index: &index,
            files: &parts,
        };
        if let Some(shard_index) = shard_index {
            check_index(&shard_index, &files, &list).map_err(in_folder)?;
        }
        let weights = list.weights(quantization.as_ref()).map_err(in_folder)?;
        Ok(ModelFolder {
            path: path.to_path_buf(),
            config,
            quantization,
            parts,
            tensors,
            index,
            weights,
        })
    }

    /// The folder that was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The contents of `config.json`.
    pub fn config(&self) -> &Value {
        &self.config
    }

    /// How the model is quantised, if it is.
    pub fn quantization(&self) -> Option<&Quantization> {
        self.quantization.as_ref()
    }

    /// All tensors as the files list them, scales and biases included.
    pub fn tensors(&self) -> &[SafetensorInfo] {
        &self.tensors
    }

    /// The tensor of this name and its bytes.
    pub fn tensor(&self, name: &str) -> Option<(&SafetensorInfo, Span<'_>)> {
        let at = self
            .index
            .find(&self.tensors, |tensor| &tensor.name, name)?;
        Some((&self.tensors[at], self.span(at)?))
    }

    /// The mapped files. [`SafetensorInfo::part`] counts them.
    pub fn parts(&self) -> &[Arc<FileBytes>] {
        &self.parts
    }

    /// The quantised weight whose packed values have this name.
    pub fn mlx_tensor(&self, name: &str) -> Option<MlxTensor<'_>> {
        let at = self
            .index
            .find(&self.tensors, |tensor| &tensor.name, name)?;
        let weight = self.weights.iter().find(|weight| weight.tensor == at)?;
        match weight.quantized.as_ref()? {
            QuantizedParts::Affine(parts) => self.mlx_view(at, parts),
            QuantizedParts::Float(_) | QuantizedParts::Method(_) => None,
        }
    }

    pub(crate) fn weights(&self) -> &[FolderWeight] {
        &self.weights
    }

    pub(crate) fn span(&self, tensor: usize) -> Option<Span<'_>> {
        let info = self.tensors.get(tensor)?;
        Some(Span {
            part: info.part,
            offset: info.range.start,
            bytes: self.parts.get(info.part)?.get(info.range.clone())?,
        })
    }

    pub(crate) fn mlx_view(&self, tensor: usize, parts: &AffineParts) -> Option<MlxTensor<'_>> {
        Some(MlxTensor {
            packed: self.span(tensor)?,
            scales: self.span(parts.scales)?,
            biases: self.span(parts.biases)?,
            scale_type: parts.scale_type,
            affine: parts.affine,
            rows: parts.dims.rows(),
            cols: parts.dims.cols(),
        })
    }

    pub(crate) fn float_view(&self, tensor: usize, parts: &FloatParts) -> Option<Converted<'_>> {
        Some(Converted::float(FloatTensor {
            packed: self.span(tensor)?,
            scales: self.span(parts.scales)?,
            format: parts.format,
        }))
    }

    pub(crate) fn method_view<'a>(&'a self, parts: &'a MethodParts) -> Converted<'a> {
        let list = TensorList {
            tensors: &self.tensors,
            index: &self.index,
            files: &self.parts,
        };
        Converted::method(list, parts)
    }
}

fn open_part(path: &Path) -> Result<(FileBytes, Vec<SafetensorInfo>), FolderError> {
    let file = FileBytes::map(path).map_err(|error| FolderProblem::Io(error).in_file(path))?;
    let tensors = read_safetensors_header(path, &file)?;
    Ok((file, tensors))
}

/// The names of the files with weights, sorted, and the index where there is one.
fn weight_files(folder: &Path) -> Result<(Vec<String>, Option<ShardIndex>), FolderError> {
    let index_path = folder.join(INDEX);
    if index_path.exists() {
        let index: ShardIndex = read_json(&index_path, MAX_INDEX_BYTES)?;
        let files: BTreeSet<&String> = index.weight_map.values().collect();
        if let Some(file) = files.iter().find(|file| !is_plain_name(file)) {
            let file = file.to_string();
            return Err(FolderProblem::IndexedName { file }.in_file(index_path));
        }
        let files = files.into_iter().cloned().collect();
        return Ok((files, Some(index)));
    }
    let files = model_files(folder).map_err(|error| FolderProblem::Io(error).in_file(folder))?;
    if files.is_empty() {
        return Err(FolderProblem::NoWeights.in_file(folder));
    }
    Ok((files, None))
}

/// A name that cannot lead out of the folder.
fn is_plain_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    let first = parts.next();
    matches!(first, Some(std::path::Component::Normal(_)))
        && parts.next().is_none()
        && !name.contains(['/', '\\'])
}

/// All `model*.safetensors` of a folder, sorted.
fn model_files(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        if let Ok(name) = entry?.file_name().into_string()
            && name.starts_with("model")
            && name.ends_with(".safetensors")
        {
            files.push(name);
        }
    }
    files.sort();
    Ok(files)
}

/// Checks that every tensor of the index is in the file that the index names.
fn check_index(
    index: &ShardIndex,
    files: &[String],
    list: &TensorList<'_>,
) -> Result<(), FolderProblem> {
    for (name, file) in &index.weight_map {
        let part = list.find(name).map(|at| list.tensors[at].part);
        if part.and_then(|part| files.get(part)) != Some(file) {
            return Err(FolderProblem::IndexedTensor {
                name: name.clone(),
                file: file.clone(),
            });
        }
    }
    Ok(())
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path, limit: usize) -> Result<T, FolderError> {
    let read = || {
        let file = FileBytes::map(path)?;
        let size = file.len();
        if size > limit {
            return Err(FolderProblem::JsonSize { size, limit });
        }
        serde_json::from_slice(&file).map_err(FolderProblem::Json)
    };
    read().map_err(|problem| problem.in_file(path))
}
