//! An architecture: its names, and how its models are read.

use crate::error::ArchError;
use crate::file::ModelFile;
use crate::model::Model;
use crate::rope::Pairing;

/// A kind of model.
#[derive(Clone, Copy, Debug)]
pub struct Architecture {
    /// The name in GGUF's `general.architecture`.
    pub name: &'static str,
    /// The names in `model_type` of `config.json`.
    pub model_types: &'static [&'static str],
    /// Which elements of a head turn together in a GGUF file. Safetensors always have split halves: converters permute the
    /// weights of those that are interleaved here.
    pub pairing: Pairing,
    pub(crate) read: Read,
}

/// How the models of an architecture are read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Read {
    /// From GGUF metadata or `config.json`.
    Text(fn(&ModelFile) -> Result<Model, ArchError>),
    /// From the weights of a folder: [`Speech::from_folder`](crate::Speech::from_folder).
    Speech,
}
