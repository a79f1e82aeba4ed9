//! An architecture: its names, and how its models are read.

use crate::error::ArchError;
use crate::file::ModelFile;
use crate::model::Model;
use crate::rope::Pairing;

/// A kind of model.
///
/// Those of this crate are in [`arch::ALL`](crate::arch::ALL). Your own needs no fork: a function from the description of a
/// model to its layers, made of [`Parts`](crate::Parts) or of your own.
///
/// ```
/// use akunu_arch::{
///     Activation, ArchError, Architecture, Layer, Model, ModelFile, Pairing, Parts, WindowPattern,
/// };
///
/// /// A Llama with biases of q, k and v.
/// static MINE: Architecture = Architecture::new("mine", &["mine"], Pairing::SplitHalves, read);
///
/// fn read(file: &ModelFile) -> Result<Model, ArchError> {
///     let parts = Parts::read(file, WindowPattern::None, None)?;
///     Ok(parts.decoder(|at| {
///         let attention = parts.attention(at).with_qkv_bias();
///         Layer::gated(attention, parts.gated(at, Activation::Silu), parts.input_norms(at))
///     }))
/// }
/// # let _ = &MINE;
/// ```
///
/// [`Model::from_store_as`](crate::Model::from_store_as) reads a model with it.
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

impl Architecture {
    /// An architecture of decoders or encoders. `read` turns a model's description into layers; `model_types` are its names in
    /// `config.json`.
    pub const fn new(
        name: &'static str,
        model_types: &'static [&'static str],
        pairing: Pairing,
        read: fn(&ModelFile) -> Result<Model, ArchError>,
    ) -> Architecture {
        Architecture {
            name,
            model_types,
            pairing,
            read: Read::Text(read),
        }
    }
}

/// Architectures are the same if their names are.
impl PartialEq for Architecture {
    fn eq(&self, other: &Architecture) -> bool {
        (self.name, self.model_types) == (other.name, other.model_types)
    }
}

/// How the models of an architecture are read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Read {
    /// From GGUF metadata or `config.json`.
    Text(fn(&ModelFile) -> Result<Model, ArchError>),
    /// From the weights of a folder: [`Speech::from_folder`](crate::Speech::from_folder).
    Speech,
}
