//! A model on a device.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use akunu_arch::{ModelConfig, Role};
use akunu_gguf::{Container, WeightStore};
use akunu_kernels::Device;
use akunu_tokenizer::{ChatTemplate, Tokenizer, TokenizerConfig};

use crate::error::EngineError;
use crate::fingerprint;
use crate::session::{Session, SessionOptions};
use crate::suggested::SuggestedSampling;
use crate::weights::{Weights, read_vector};

/// A model whose weights are bound to a device.
pub struct Model {
    path: PathBuf,
    config: ModelConfig,
    tokenizer: Tokenizer,
    template: Option<ChatTemplate>,
    suggested: SuggestedSampling,
    weights: Weights,
    rope_freqs: Vec<f32>,
    weight_bytes: u64,
    fingerprint: [u8; 32],
    device: Mutex<Box<dyn Device>>,
}

impl Model {
    /// Opens a GGUF file or a folder with safetensors and binds its weights to `device`.
    pub fn load(path: impl AsRef<Path>, mut device: Box<dyn Device>) -> Result<Model, EngineError> {
        let path = path.as_ref();
        let store = WeightStore::open(path)?;
        if is_vocabulary(&store) {
            let path = path.to_path_buf();
            return Err(EngineError::OnlyVocabulary { path });
        }
        let config = ModelConfig::from_store(&store)?;
        if config.arch.role != Role::Decoder {
            let arch = config.arch.name;
            return Err(EngineError::NotADecoder {
                path: path.to_path_buf(),
                arch,
            });
        }
        config.check_weights(&store, path)?;
        let (tokenizer, template) = read_text(&store)?;
        tokenizer.check_embedding_rows(config.vocab_size as usize)?;
        let rope_freqs = match store.tensor("rope_freqs") {
            Some(view) => read_vector(&view, path)?,
            None => Vec::new(),
        };
        let weights = Weights::bind(&store, &config, path, device.as_mut())?;
        let model = Model {
            path: path.to_path_buf(),
            tokenizer,
            template,
            suggested: SuggestedSampling::of(&store),
            weights,
            rope_freqs,
            weight_bytes: store.iter().map(|weight| weight.size() as u64).sum(),
            fingerprint: fingerprint::of(&store, &config),
            config,
            device: Mutex::new(device),
        };
        // Nothing of the vocabulary is read from the file again.
        if let Container::Gguf(file) = store.container() {
            file.forget_header();
        }
        Ok(model)
    }

    /// A conversation with this model, with buffers of its own.
    pub fn session(&self, options: SessionOptions) -> Result<Session<'_>, EngineError> {
        Session::new(self, options)
    }

    /// Where the model came from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its shape.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Its vocabulary.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// How it wants conversations to be written, where it says so.
    pub fn chat_template(&self) -> Option<&ChatTemplate> {
        self.template.as_ref()
    }

    /// How it wants its tokens to be chosen, where it says so.
    pub fn suggested_sampling(&self) -> &SuggestedSampling {
        &self.suggested
    }

    /// Bytes of all weights: what decoding one token reads, but for the rows of the embedding that
    /// are not looked at.
    pub fn weight_bytes(&self) -> u64 {
        self.weight_bytes
    }

    /// What tells this model from others.
    pub(crate) fn fingerprint(&self) -> &[u8; 32] {
        &self.fingerprint
    }

    pub(crate) fn weights(&self) -> &Weights {
        &self.weights
    }

    pub(crate) fn rope_freqs(&self) -> &[f32] {
        &self.rope_freqs
    }

    /// The device, for one submission or one change of buffers.
    pub(crate) fn device(&self) -> MutexGuard<'_, Box<dyn Device>> {
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a file has tokens and no weights, as those that tokenizers are tested with.
fn is_vocabulary(store: &WeightStore) -> bool {
    let Container::Gguf(file) = store.container() else {
        return false;
    };
    store.is_empty() && file.metadata().get("tokenizer.ggml.tokens").is_some()
}

/// The vocabulary and the chat template, from wherever the container keeps them.
fn read_text(store: &WeightStore) -> Result<(Tokenizer, Option<ChatTemplate>), EngineError> {
    match store.container() {
        Container::Gguf(file) => {
            let metadata = file.metadata();
            Ok((
                Tokenizer::from_gguf(metadata)?,
                ChatTemplate::from_gguf(metadata)?,
            ))
        }
        Container::Folder(folder) => {
            let tokenizer = Tokenizer::from_file(folder.path().join("tokenizer.json"))?;
            let config = TokenizerConfig::from_folder(folder.path())?;
            let template = config
                .chat_template
                .as_deref()
                .map(ChatTemplate::new)
                .transpose();
            Ok((
                tokenizer,
                template.map_err(akunu_tokenizer::TokenizerError::from)?,
            ))
        }
    }
}
