//! A GGUF model: one file, or the parts of a split one.

use super::error::{GgufError, Problem};
use super::metadata::Metadata;
use super::parse::{MAGIC, ParsedFile};
use super::split::SplitName;
use super::tensor::{TensorInfo, TensorView};
use crate::index::NameIndex;
use crate::mmap::FileBytes;
use std::path::Path;
use std::sync::Arc;

/// An open GGUF model. Metadata and tensors are borrowed from the mapped files.
#[derive(Debug)]
pub struct GgufFile {
    parts: Vec<Arc<FileBytes>>,
    version: u32,
    metadata: Metadata,
    tensors: Vec<TensorInfo>,
    index: NameIndex,
}

impl GgufFile {
    /// Opens a file. For one part of a split model, `name-00001-of-00003.gguf`, the others are opened
    /// too.
    pub fn open(path: impl AsRef<Path>) -> Result<GgufFile, GgufError> {
        let path = path.as_ref();
        let first = open_part(path)?;
        match SplitName::of_part(path, &first)? {
            None => GgufFile::join(vec![first]),
            Some(split) => GgufFile::join(split.open_all(path)?),
        }
    }

    /// Parses a whole file that is in memory. A part of a split model is taken alone.
    pub fn parse(bytes: Vec<u8>) -> Result<GgufFile, GgufError> {
        let file = FileBytes::from_memory("<memory>", bytes);
        GgufFile::join(vec![ParsedFile::new(Arc::new(file))?])
    }

    /// One model from its parts; the metadata is that of the first.
    fn join(parsed: Vec<ParsedFile>) -> Result<GgufFile, GgufError> {
        let mut parts = Vec::with_capacity(parsed.len());
        let mut tensors = Vec::new();
        let mut first = None;
        for (part, parsed) in parsed.into_iter().enumerate() {
            parts.push(parsed.file);
            tensors.extend(
                parsed
                    .tensors
                    .into_iter()
                    .map(|tensor| TensorInfo { part, ..tensor }),
            );
            first.get_or_insert((parsed.version, parsed.metadata));
        }
        let path = parts
            .first()
            .map(|part| part.path())
            .unwrap_or(Path::new(""));
        let index = NameIndex::build(&tensors, |tensor| &tensor.name)
            .map_err(|name| Problem::DuplicateTensor { name }.in_file(path))?;
        let Some((version, metadata)) = first else {
            return Err(Problem::Magic { found: Vec::new() }.in_file(path));
        };
        Ok(GgufFile {
            parts,
            version,
            metadata,
            tensors,
            index,
        })
    }

    /// The version of the format: 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The metadata of the model.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// All tensors in the order of the file, part after part.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// The tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<TensorView<'_>> {
        let at = self
            .index
            .find(&self.tensors, |tensor| &tensor.name, name)?;
        self.view(&self.tensors[at])
    }

    /// The bytes of a tensor from [`GgufFile::tensors`].
    pub fn view<'a>(&'a self, info: &'a TensorInfo) -> Option<TensorView<'a>> {
        let bytes = self.parts.get(info.part)?.get(info.range.clone())?;
        Some(TensorView { info, bytes })
    }

    /// The file, or the first part of a split one.
    pub fn path(&self) -> &Path {
        self.parts.first().map_or(Path::new(""), |part| part.path())
    }

    /// Releases the memory pages before the tensors: the metadata, with the whole vocabulary. It can still
    /// be read, from the file again.
    pub fn forget_header(&self) {
        for (at, part) in self.parts.iter().enumerate() {
            let of_part = self.tensors.iter().filter(|tensor| tensor.part == at);
            let first = of_part.map(|tensor| tensor.range.start).min();
            part.forget(0..first.unwrap_or(part.len()));
        }
    }

    /// The mapped files. [`TensorInfo::part`] counts them.
    pub fn parts(&self) -> &[Arc<FileBytes>] {
        &self.parts
    }
}

/// Whether a name is that of one of the files of a model folder.
fn is_of_a_folder(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let ends = [".safetensors", ".safetensors.index.json"];
    name == "config.json" || ends.iter().any(|end| name.ends_with(end))
}

/// Maps and parses one file.
pub(crate) fn open_part(path: &Path) -> Result<ParsedFile, GgufError> {
    let file = FileBytes::map(path).map_err(|error| Problem::Open(error).in_file(path))?;
    if is_of_a_folder(path) && !file.starts_with(&MAGIC) {
        return Err(Problem::OneOfAFolder.in_file(path));
    }
    ParsedFile::new(Arc::new(file))
}
