//! The weights of a model under canonical names, from either container.

mod conversion;
mod error;
mod names;
mod view;

pub use conversion::Conversion;
pub use error::StoreError;
pub use names::{canonical_from_gguf, canonical_from_hugging_face, has_sandwich_norms};
pub use view::{Data, WeightView};

use crate::gguf::GgufFile;
use crate::index::NameIndex;
use crate::mmap::FileBytes;
use crate::safetensors::ModelFolder;
use std::path::Path;
use std::sync::Arc;

/// The weight that the embedding lookup reads, and the output layer where it is tied.
const TOKEN_EMBEDDING: &str = "token_embedding.weight";
/// The weight of the output layer.
const OUTPUT: &str = "output.weight";

/// An open model: its weights by canonical name, and the container that they come from.
///
/// A tensor that has no canonical name keeps its own.
///
/// ```no_run
/// use akunu_gguf::{Container, WeightStore};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = WeightStore::open("model.gguf")?;
/// if let Container::Gguf(file) = store.container() {
///     println!("{:?}", file.metadata().string("general.architecture")?);
/// }
/// if let Some(q) = store.tensor("layers.3.attention.q.weight") {
///     println!("{} × {} values of type {}", q.rows(), q.cols(), q.dtype);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct WeightStore {
    source: Source,
    entries: Vec<Entry>,
    index: NameIndex,
}

#[derive(Debug)]
enum Source {
    Gguf(GgufFile),
    Folder(ModelFolder),
}

/// Where the weights come from.
#[derive(Clone, Copy, Debug)]
pub enum Container<'a> {
    /// A GGUF file: the model's description is [`GgufFile::metadata`].
    Gguf(&'a GgufFile),
    /// A folder: the model's description is [`ModelFolder::config`].
    Folder(&'a ModelFolder),
}

#[derive(Debug)]
struct Entry {
    name: String,
    /// Position in the list of the container: tensors of a GGUF file, weights of a folder.
    at: usize,
}

impl WeightStore {
    /// Opens a GGUF file (any part of a split one), or a folder with safetensors.
    pub fn open(path: impl AsRef<Path>) -> Result<WeightStore, StoreError> {
        let path = path.as_ref();
        if path.is_dir() {
            WeightStore::from_folder(ModelFolder::open(path)?)
        } else {
            WeightStore::from_gguf(GgufFile::open(path)?)
        }
    }

    /// The weights of an open GGUF file.
    pub fn from_gguf(file: GgufFile) -> Result<WeightStore, StoreError> {
        let name = |tensor: &str| canonical_from_gguf(tensor).unwrap_or(tensor.to_string());
        let entries = file.tensors().iter().enumerate().map(|(at, tensor)| Entry {
            name: name(&tensor.name),
            at,
        });
        let entries = entries.collect();
        WeightStore::new(Source::Gguf(file), entries)
    }

    /// The weights of an open folder. Tensors of types that weights cannot have are left out, unless
    /// they are weights.
    pub fn from_folder(folder: ModelFolder) -> Result<WeightStore, StoreError> {
        let tensors = folder.tensors();
        let sandwich = is_sandwich(&folder);
        let n_layers = n_layers(folder.config());
        let mut entries = Vec::with_capacity(folder.weights().len());
        for (at, weight) in folder.weights().iter().enumerate() {
            let Some(tensor) = tensors.get(weight.tensor) else {
                continue;
            };
            let name = weight.name(tensor);
            let moved = n_layers.and_then(|n_layers| names::in_layers(&name, n_layers));
            let canonical =
                canonical_from_hugging_face(moved.as_deref().unwrap_or(&name), sandwich);
            if weight.quantized.is_none() && tensor.dtype().is_none() {
                if canonical.is_none() {
                    continue;
                }
                return Err(StoreError::ElementType {
                    path: folder.path().to_path_buf(),
                    tensor: tensor.name.clone(),
                    element: tensor.element,
                });
            }
            let name = canonical.unwrap_or_else(|| name.into_owned());
            entries.push(Entry { name, at });
        }
        WeightStore::new(Source::Folder(folder), entries)
    }

    fn new(source: Source, entries: Vec<Entry>) -> Result<WeightStore, StoreError> {
        match NameIndex::build(&entries, |entry| &entry.name) {
            Ok(index) => Ok(WeightStore {
                source,
                entries,
                index,
            }),
            Err(name) => {
                let twin = entries.iter().rfind(|entry| entry.name == name);
                let tensor = twin.and_then(|entry| view::view(&source, &name, entry.at));
                Err(StoreError::DuplicateWeight {
                    path: source.path().to_path_buf(),
                    tensor: tensor
                        .map(|view| view.tensor.to_string())
                        .unwrap_or_default(),
                    name,
                })
            }
        }
    }

    /// The weight of this name.
    pub fn tensor(&self, name: &str) -> Option<WeightView<'_>> {
        let at = self.index.find(&self.entries, |entry| &entry.name, name)?;
        let entry = &self.entries[at];
        view::view(&self.source, &entry.name, entry.at)
    }

    /// The tensors that this weight would be in a container such as this. Those of a folder may have prefixes such as `model.`.
    pub fn tensor_names(&self, name: &str) -> Vec<String> {
        match &self.source {
            Source::Gguf(_) => names::gguf_names(name),
            Source::Folder(folder) => {
                let mut all = names::hugging_face_names(name, is_sandwich(folder));
                if let Some(n_layers) = n_layers(folder.config()).filter(|_| has_mtp_apart(folder))
                {
                    let apart = |name: String| names::apart(&name, n_layers).unwrap_or(name);
                    all = all.into_iter().map(apart).collect();
                }
                all
            }
        }
    }

    /// All weights, in the order of the container.
    pub fn iter(&self) -> impl Iterator<Item = WeightView<'_>> {
        let views = self.entries.iter();
        views.filter_map(|entry| view::view(&self.source, &entry.name, entry.at))
    }

    /// How many weights there are, each of which has one name.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no weights: a GGUF file may hold only a vocabulary.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The container, which has the model's description.
    pub fn container(&self) -> Container<'_> {
        match &self.source {
            Source::Gguf(file) => Container::Gguf(file),
            Source::Folder(folder) => Container::Folder(folder),
        }
    }

    /// The mapped files. [`crate::Span::part`] counts them.
    pub fn parts(&self) -> &[Arc<FileBytes>] {
        match &self.source {
            Source::Gguf(file) => file.parts(),
            Source::Folder(folder) => folder.parts(),
        }
    }

    /// Whether the output layer uses the token embedding: `config.json` says so, or there is no
    /// output weight.
    pub fn has_tied_embeddings(&self) -> bool {
        let said = match &self.source {
            Source::Gguf(_) => None,
            Source::Folder(folder) => tie_word_embeddings(folder.config()),
        };
        let output = self.index.find(&self.entries, |entry| &entry.name, OUTPUT);
        said == Some(true) || output.is_none()
    }

    /// The weight of the output layer: its own, or the token embedding where that is tied.
    pub fn output(&self) -> Option<WeightView<'_>> {
        if self.has_tied_embeddings() {
            self.tensor(TOKEN_EMBEDDING)
        } else {
            self.tensor(OUTPUT)
        }
    }
}

impl Source {
    fn path(&self) -> &Path {
        match self {
            Source::Gguf(file) => file.path(),
            Source::Folder(folder) => folder.path(),
        }
    }
}

/// Whether a model has a norm before and after each block.
fn is_sandwich(folder: &ModelFolder) -> bool {
    let mut tensors = folder.tensors().iter();
    tensors.any(|tensor| has_sandwich_norms(&tensor.name))
}

/// Whether a folder has the block for multi-token prediction apart from its layers.
fn has_mtp_apart(folder: &ModelFolder) -> bool {
    let mut tensors = folder.tensors().iter();
    tensors.any(|tensor| tensor.name.starts_with("mtp."))
}

/// The layers that the config says; that of a model with images keeps the language model in `text_config`.
fn n_layers(config: &serde_json::Value) -> Option<usize> {
    let text = config.get("text_config").unwrap_or(config);
    usize::try_from(text.get("num_hidden_layers")?.as_u64()?).ok()
}

/// What the config says; that of a model with images keeps the language model in `text_config`.
fn tie_word_embeddings(config: &serde_json::Value) -> Option<bool> {
    let text = config.get("text_config").unwrap_or(config);
    [text, config]
        .iter()
        .find_map(|section| section.get("tie_word_embeddings")?.as_bool())
}
