//! A model on a device.

use std::path::Path;
use std::sync::{Arc, MutexGuard};

use akunu_arch as arch;
use akunu_program::{Device, Program};
use akunu_tokenizer::{ChatTemplate, Tokenizer};
use akunu_types::KvFormat;

use crate::cache::{Cache, CacheOptions};
use crate::error::EngineError;
use crate::grammar::TokenTable;
use crate::loaded::{Loaded, ModelOptions};
use crate::loading::Loading;
use crate::runtime::Runtime;
use crate::sampling::{Sampling, SamplingOptions};
use crate::shared::Shared;

/// A model whose weights are bound to a device. Clones are cheap and share everything: the weights, the device, the
/// pages of keys and values.
///
/// ```no_run
/// use akunu_cpu::{CpuDevice, CpuOptions};
/// use akunu_engine::{Model, SessionOptions};
///
/// let model = Model::load("model.gguf", Box::new(CpuDevice::new(CpuOptions::default())?))?;
/// let session = model.session(SessionOptions::default())?;
/// # drop(session);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Model {
    loaded: Arc<Loaded>,
    runtime: Arc<Shared<Runtime>>,
}

impl Model {
    /// Opens a GGUF file or a folder with safetensors and binds its weights to `device`.
    pub fn load(path: impl AsRef<Path>, device: Box<dyn Device>) -> Result<Model, EngineError> {
        Model::load_with(path, device, ModelOptions::default())
    }

    /// Like [`Model::load`], with options.
    pub fn load_with(
        path: impl AsRef<Path>,
        device: Box<dyn Device>,
        options: ModelOptions,
    ) -> Result<Model, EngineError> {
        Model::load_watched(path, device, options, &Loading::default())
    }

    /// Like [`Model::load_with`], with figures of how far it is.
    pub fn load_watched(
        path: impl AsRef<Path>,
        mut device: Box<dyn Device>,
        options: ModelOptions,
        loading: &Loading,
    ) -> Result<Model, EngineError> {
        let loaded = Loaded::open(path.as_ref(), device.as_mut(), options, loading)?;
        let loaded = Arc::new(loaded);
        let runtime = Runtime::new(Arc::clone(&loaded), device)?;
        Ok(Model {
            loaded,
            runtime: Arc::new(Shared::new(runtime)),
        })
    }

    /// Limits the memory for keys and values of all sessions together, in positions. Without it the pool grows as
    /// sequences need it. Call it before making sessions.
    pub fn limit_pool(&self, positions: u32) {
        self.runtime().limit_pool(positions);
    }

    /// Keeps pages of keys and values, and states, in a folder too, and looks for them there: a prompt that another process has
    /// read, or this one before it was closed, need not be read again. Several processes may share a folder.
    pub fn use_cache(&self, options: &CacheOptions) {
        let cache = Cache::open(options, self.fingerprint(), self.loaded.kv);
        self.runtime().set_cache(cache);
    }

    /// Has what is new written to the folder of [`Model::use_cache`], in the background. It reads the device, so call it when no
    /// answer is being waited for. Returns whether there is more than may wait to be written: call it again then.
    pub fn save_cache(&self) -> Result<bool, EngineError> {
        self.runtime().save_kept()
    }

    /// Has everything written, and waits for it.
    pub fn finish_cache(&self) -> Result<(), EngineError> {
        loop {
            let has_more = self.save_cache()?;
            if let Some(cache) = self.runtime().cache() {
                cache.finish();
            }
            if !has_more {
                return Ok(());
            }
        }
    }

    /// A sentence about the first thing that went wrong with the folder since the last call. Answers do not depend on it.
    pub fn take_cache_fault(&self) -> Option<String> {
        let mut runtime = self.runtime();
        runtime.cache().and_then(|cache| cache.take_fault())
    }

    /// The file or folder of the model.
    pub fn path(&self) -> &Path {
        &self.loaded.path
    }

    /// The shape of the model: layers, heads, dimensions and the context that it was trained for.
    pub fn config(&self) -> &arch::Model {
        &self.loaded.config
    }

    /// How keys and values are stored.
    pub fn kv_format(&self) -> KvFormat {
        self.loaded.kv
    }

    /// The vocabulary of the model, which turns text into token ids and back.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.loaded.tokenizer
    }

    /// The tokenizer, shared.
    pub(crate) fn shared_tokenizer(&self) -> Arc<Tokenizer> {
        Arc::clone(&self.loaded.tokenizer)
    }

    /// Its vocabulary, for grammars.
    pub(crate) fn token_table(&self) -> Arc<TokenTable> {
        let make = || Arc::new(TokenTable::new(self.shared_tokenizer()));
        Arc::clone(self.loaded.token_table.get_or_init(make))
    }

    /// The chat template of the model's files, if there is one.
    pub fn chat_template(&self) -> Option<&ChatTemplate> {
        self.loaded.template.as_ref()
    }

    /// The sampling that suits the model: [`ModelOptions::suggested`], and what its files suggest for the rest.
    pub fn suggested_sampling(&self) -> &SamplingOptions {
        &self.loaded.suggested
    }

    /// A sentence about weights that became another format while the model was loaded, and what that costs; `None` where all are used
    /// as they are stored.
    pub fn conversion(&self) -> Option<&str> {
        self.loaded.conversion.as_deref()
    }

    /// Bytes of all weights: what decoding one token reads, except for the rows of the embedding that
    /// it does not need.
    pub fn weight_bytes(&self) -> u64 {
        self.loaded.weight_bytes
    }

    /// The device's name, and what it runs on.
    pub fn device(&self) -> (&'static str, String) {
        self.runtime().describe()
    }

    /// Pages of keys and values, and blocks of states, that sessions use.
    pub fn pages_in_use(&self) -> u32 {
        self.runtime().n_owned_pages()
    }

    /// The program of a decode step for this many sequences, each choosing with `sampling`.
    pub fn decode_program(&self, sequences: u32, sampling: Sampling) -> Program {
        self.runtime().decode_program(sequences, sampling.choice())
    }

    /// A hash that identifies this model, and how its heads turn.
    pub(crate) fn fingerprint(&self) -> [u8; 32] {
        let mut fingerprint = self.loaded.fingerprint;
        fingerprint[0] ^= u8::from(self.runtime().turns_long());
        fingerprint
    }

    /// What its file holds.
    pub(crate) fn loaded(&self) -> &Arc<Loaded> {
        &self.loaded
    }

    /// Whether two handles are of the same model.
    pub(crate) fn is(&self, other: &Model) -> bool {
        Arc::ptr_eq(&self.runtime, &other.runtime)
    }

    /// The device and all that lies on it, for one submission or one change of buffers.
    pub(crate) fn runtime(&self) -> MutexGuard<'_, Runtime> {
        self.runtime.lock()
    }
}

impl AsRef<Model> for Model {
    fn as_ref(&self) -> &Model {
        self
    }
}
