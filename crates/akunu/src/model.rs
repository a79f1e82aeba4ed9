//! A model on a device.

use std::path::Path;

use akunu_engine::arch::Model as ModelConfig;
use akunu_engine::{
    Adapter, Batch, CacheOptions, KvFormat, Loading, Model as EngineModel, ModelOptions,
    SamplingOptions, Session, SessionOptions,
};
use akunu_tokenizer::{ChatTemplate, Message, RenderOptions, Tokenizer};

use crate::chat::{Chat, ChatOptions};
use crate::device::Device;
use crate::error::Error;
use crate::sampling::chat_sampling;
use crate::turns;

/// A model on a device. Clones are cheap and share everything.
///
/// ```no_run
/// let model = akunu::Model::open("model.gguf")?;
/// println!("{} layers, on {}", model.config().layers.len(), model.device().1);
/// let ids = model.prompt(&[akunu::Message::new("user", "Hello")])?;
/// let mut session = model.session(akunu::SessionOptions::default())?;
/// session.feed(&ids)?;
/// for token in session.generate(akunu::GenerateOptions::default())?.take(20) {
///     print!("{}", token?.text);
/// }
/// # Ok::<(), akunu::Error>(())
/// ```
#[derive(Clone)]
pub struct Model(EngineModel);

impl Model {
    /// Opens a GGUF file, or a folder with safetensors, on the best device of this machine.
    pub fn open(path: impl AsRef<Path>) -> Result<Model, Error> {
        Model::open_on(path, Device::Auto)
    }

    /// Opens a model on this device.
    pub fn open_on(path: impl AsRef<Path>, device: Device) -> Result<Model, Error> {
        Model::open_with(path, device, ModelOptions::default())
    }

    /// Opens a model on this device with options: keys and values in 8 bits, for example.
    pub fn open_with(
        path: impl AsRef<Path>,
        device: Device,
        options: ModelOptions,
    ) -> Result<Model, Error> {
        Model::open_watched(path, device, options, &Loading::default())
    }

    /// Like [`Model::open_with`], with figures of how far it is, for another thread to show.
    pub fn open_watched(
        path: impl AsRef<Path>,
        device: Device,
        options: ModelOptions,
        loading: &Loading,
    ) -> Result<Model, Error> {
        #[cfg(feature = "fetch")]
        let options = ModelOptions {
            suggested: options
                .suggested
                .or(crate::fetch::recommended_sampling(path.as_ref())),
            ..options
        };
        let model = EngineModel::load_watched(path, device.open()?, options, loading)?;
        Ok(Model(model))
    }

    /// Starts a conversation with the options of [`Model::chat_options`].
    pub fn chat(&self) -> Result<Chat, Error> {
        self.chat_with(self.chat_options())
    }

    /// Starts a conversation with these options; change those of [`Model::chat_options`], which suit the model.
    pub fn chat_with(&self, options: ChatOptions) -> Result<Chat, Error> {
        let session = self.session(SessionOptions {
            context: options.context,
            ..SessionOptions::default()
        })?;
        Ok(Chat::new(session, options))
    }

    /// The options that suit this model: a default context, sampling as the catalogue (with the feature `fetch`) or its file
    /// recommends, and a random seed.
    pub fn chat_options(&self) -> ChatOptions {
        ChatOptions {
            sampling: chat_sampling(self.suggested_sampling()),
            ..ChatOptions::default()
        }
    }

    /// The ids of a conversation up to where the model's answer begins. No text of a message becomes a control token.
    pub fn prompt(&self, messages: &[Message]) -> Result<Vec<u32>, Error> {
        Ok(turns::encode(&self.0, messages)?)
    }

    /// Like [`Model::prompt`], with further variables for the chat template: `tools`, for example. A
    /// model without a template ignores them.
    pub fn prompt_with(
        &self,
        messages: &[Message],
        options: &RenderOptions,
    ) -> Result<Vec<u32>, Error> {
        Ok(turns::encode_with(&self.0, messages, options)?)
    }

    /// Texts that end an answer to a prompt of [`Model::prompt`], besides the model's own end tokens.
    pub fn prompt_stops(&self) -> Vec<String> {
        turns::stops(&self.0)
    }
}

/// The model itself, its sessions and batches.
impl Model {
    /// A sequence of tokens with its keys and values, which can be continued, saved and forked.
    pub fn session(&self, options: SessionOptions) -> Result<Session, Error> {
        Ok(self.0.session(options)?)
    }

    /// Makes a batch of up to `sequences` that run together, 1 to [`MAX_SEQUENCES`](crate::MAX_SEQUENCES). As many again may wait.
    pub fn batch(&self, sequences: u32) -> Result<Batch, Error> {
        Ok(self.0.batch(sequences)?)
    }

    /// Loads a LoRA adapter from a GGUF file or a folder, for [`ChatOptions::adapters`] or
    /// [`Session::set_adapters`](crate::Session::set_adapters).
    pub fn load_adapter(&self, path: impl AsRef<Path>) -> Result<Adapter, Error> {
        Ok(self.0.load_adapter(path)?)
    }

    /// Limits the memory for keys and values of all sessions together, in positions. Without it the pool grows as
    /// sequences need it. Call it before making sessions.
    pub fn limit_pool(&self, positions: u32) {
        self.0.limit_pool(positions);
    }

    /// Keeps pages of keys and values, and states, in a folder too, and looks for them there: a prompt that another process has
    /// read, or this one before it was closed, need not be read again. Several processes may share a folder.
    ///
    /// ```no_run
    /// use akunu::{CacheOptions, Model};
    ///
    /// let model = Model::open("model.gguf")?;
    /// model.use_cache(&CacheOptions {
    ///     folder: "cache".into(),
    ///     ..CacheOptions::default()
    /// });
    /// for piece in model.chat()?.ask("Why is the sky blue?")? {
    ///     print!("{}", piece?);
    /// }
    /// // The prompt and the answer are read from the folder next time.
    /// model.finish_cache()?;
    /// if let Some(fault) = model.take_cache_fault() {
    ///     eprintln!("{fault}");
    /// }
    /// # Ok::<(), akunu::Error>(())
    /// ```
    pub fn use_cache(&self, options: &CacheOptions) {
        self.0.use_cache(options);
    }

    /// Has what is new written to the folder of [`Model::use_cache`], in the background. It reads the device, so call it when no
    /// answer is being waited for. Returns whether there is more than may wait to be written: call it again then.
    pub fn save_cache(&self) -> Result<bool, Error> {
        Ok(self.0.save_cache()?)
    }

    /// Has everything written, and waits for it.
    pub fn finish_cache(&self) -> Result<(), Error> {
        Ok(self.0.finish_cache()?)
    }

    /// A sentence about the first thing that went wrong with the folder since the last call. Answers do not depend on it.
    pub fn take_cache_fault(&self) -> Option<String> {
        self.0.take_cache_fault()
    }

    /// The file or folder of the model.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The shape of the model: layers, heads, dimensions and the context that it was trained for.
    pub fn config(&self) -> &ModelConfig {
        self.0.config()
    }

    /// How keys and values are stored.
    pub fn kv_format(&self) -> KvFormat {
        self.0.kv_format()
    }

    /// The vocabulary of the model, which turns text into token ids and back.
    pub fn tokenizer(&self) -> &Tokenizer {
        self.0.tokenizer()
    }

    /// The chat template of the model's files, if there is one.
    pub fn chat_template(&self) -> Option<&ChatTemplate> {
        self.0.chat_template()
    }

    /// The sampling that suits the model: [`ModelOptions::suggested`], the catalogue's, and what its files suggest for the rest.
    pub fn suggested_sampling(&self) -> &SamplingOptions {
        self.0.suggested_sampling()
    }

    /// A sentence about weights that became another format while the model was loaded, and what that costs; `None` where all are used
    /// as they are stored.
    ///
    /// ```no_run
    /// use akunu::Model;
    ///
    /// let model = Model::open("Qwen3-0.6B-FP8")?;
    /// if let Some(conversion) = model.conversion() {
    ///     eprintln!("{conversion}");
    /// }
    /// # Ok::<(), akunu::Error>(())
    /// ```
    pub fn conversion(&self) -> Option<&str> {
        self.0.conversion()
    }

    /// Bytes of all weights: what decoding one token reads, except for the rows of the embedding that it does not need.
    pub fn weight_bytes(&self) -> u64 {
        self.0.weight_bytes()
    }

    /// The device's name, and what it runs on.
    pub fn device(&self) -> (&'static str, String) {
        self.0.device()
    }

    /// Pages of keys and values that sessions use.
    pub fn pages_in_use(&self) -> u32 {
        self.0.pages_in_use()
    }
}

impl AsRef<EngineModel> for Model {
    fn as_ref(&self) -> &EngineModel {
        &self.0
    }
}

impl From<EngineModel> for Model {
    fn from(model: EngineModel) -> Model {
        Model(model)
    }
}
