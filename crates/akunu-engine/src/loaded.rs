//! What a model file holds, once it is read: all that never changes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use akunu_arch::{Architecture, Model};
use akunu_gguf::{Container, WeightStore};
use akunu_program::Device;
use akunu_tokenizer::{ChatTemplate, Tokenizer, TokenizerConfig};
use akunu_types::KvFormat;

use crate::error::EngineError;
use crate::fingerprint;
use crate::grammar::TokenTable;
use crate::key_centre;
use crate::loading::Loading;
use crate::sampling::SamplingOptions;
use crate::suggested::suggested;
use crate::weights::{self, Bound, read_vector};

/// How a model is loaded.
///
/// Later versions may have further fields: end a value with `..ModelOptions::default()`.
///
/// ```no_run
/// use akunu_engine::{KvFormat, Model, ModelOptions};
/// # fn example(device: Box<dyn akunu_engine::Device>) -> Result<(), akunu_engine::EngineError> {
/// let options = ModelOptions { kv: KvFormat::Q8, ..ModelOptions::default() };
/// let model = Model::load_with("model.gguf", device, options)?;
/// # drop(model);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ModelOptions {
    /// How keys and values are stored.
    pub kv: KvFormat,
    /// Sampling known to suit the model, which takes precedence over what its files suggest. See
    /// [`Model::suggested_sampling`](crate::Model::suggested_sampling).
    pub suggested: SamplingOptions,
    /// An architecture of your own, for a model of one that is not known here. `None`: the one that the file names.
    pub architecture: Option<&'static Architecture>,
    /// Leaves out the block for multi-token prediction, which takes some memory and saves time ([`Mtp`](crate::Mtp)).
    pub without_mtp: bool,
    /// Makes room for further options.
    #[doc(hidden)]
    pub _more: (),
}

/// A model file whose weights are bound to a device.
pub(crate) struct Loaded {
    pub path: PathBuf,
    pub config: Model,
    /// How keys and values are stored.
    pub kv: KvFormat,
    pub tokenizer: Arc<Tokenizer>,
    /// The same for grammars, made when the first one is compiled.
    pub token_table: OnceLock<Arc<TokenTable>>,
    pub template: Option<ChatTemplate>,
    pub suggested: SamplingOptions,
    pub weights: Bound,
    /// Factors of the RoPE divisors; of long-rope, those for short sessions.
    pub rope_freqs: Vec<f32>,
    /// Mean subtracted from each layer's keys; none where they are stored as they are.
    pub key_centres: Vec<Option<Vec<f32>>>,
    /// Whether some layer has a router.
    pub has_experts: bool,
    /// A sentence about weights that were converted, if some were.
    pub conversion: Option<String>,
    /// Bytes of all weights.
    pub weight_bytes: u64,
    /// A hash that identifies this model.
    pub fingerprint: [u8; 32],
}

impl Loaded {
    pub fn open(
        path: &Path,
        device: &mut dyn Device,
        options: ModelOptions,
        loading: &Loading,
    ) -> Result<Loaded, EngineError> {
        let store = WeightStore::open(path)?;
        if is_vocabulary(&store) {
            let path = path.to_path_buf();
            return Err(EngineError::OnlyVocabulary { path });
        }
        let mut config = match options.architecture {
            Some(own) => Model::from_store_as(&store, own)?,
            None => Model::from_store(&store)?,
        };
        config.mtp = config.mtp.filter(|_| !options.without_mtp);
        if config.is_encoder() {
            let arch = config.arch;
            return Err(EngineError::NotADecoder {
                path: path.to_path_buf(),
                arch,
            });
        }
        let kv = options.kv;
        let head_dims: Vec<u32> = config.attention().map(|a| a.head_dim).collect();
        if let Some(&head_dim) = head_dims.iter().find(|&&head_dim| !kv.takes(head_dim)) {
            return Err(EngineError::KvFormat {
                path: path.to_path_buf(),
                kv,
                head_dim,
            });
        }
        config.check_weights(&store, path)?;
        let (tokenizer, template) = read_text(&store)?;
        tokenizer.check_embedding_rows(config.vocab_size as usize)?;
        let rope_freqs = match (&config.long_rope, store.tensor("rope_freqs")) {
            (Some(long), _) => long.short.clone(),
            (None, Some(view)) => read_vector(&view, path)?,
            (None, None) => Vec::new(),
        };
        config.check_rope(&rope_freqs, path)?;
        let key_centres = key_centre::of_layers(&store, &config, (kv, &rope_freqs), path)?;
        let weights = weights::bind(&store, &config, (path, loading), device)?;
        let loaded = Loaded {
            path: path.to_path_buf(),
            kv,
            tokenizer: Arc::new(tokenizer),
            token_table: OnceLock::new(),
            template,
            suggested: options.suggested.or(suggested(&store)),
            weights,
            rope_freqs,
            key_centres,
            conversion: store.conversion().map(|found| found.to_string()),
            weight_bytes: store.iter().map(|weight| weight.size() as u64).sum(),
            fingerprint: fingerprint::of(&store, &config),
            has_experts: config.has_experts(),
            config,
        };
        // Nothing of the vocabulary is read from the file again.
        if let Container::Gguf(file) = store.container() {
            file.forget_header();
        }
        Ok(loaded)
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
pub(crate) fn read_text(
    store: &WeightStore,
) -> Result<(Tokenizer, Option<ChatTemplate>), EngineError> {
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
