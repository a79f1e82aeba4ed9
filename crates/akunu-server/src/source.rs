//! Where the models of a server come from, and how each is served.

use std::path::{Path, PathBuf};

use akunu::{
    Device, Embedder, Encoder, Model, ModelOptions, Reranker, SamplingOptions, Transcriber,
};

use crate::error::OpenError;
use crate::stats::Kind;

/// Where a model comes from.
pub struct Source {
    /// Its name for clients.
    pub name: String,
    /// Its other names.
    pub aliases: Vec<String>,
    /// Opens it. It is called whenever the model is asked for and not loaded.
    pub open: Box<dyn Fn() -> Result<Served, OpenError> + Send + Sync>,
    /// Whether it stays loaded after the first request.
    pub pinned: bool,
    /// How it is served, if it writes.
    pub settings: ModelSettings,
}

/// Opens a model.
pub type OpenModel = Box<dyn Fn() -> Result<Model, OpenError> + Send + Sync>;

/// How a model that writes is served.
///
/// Later versions may have further fields: end a value with `..ModelSettings::default()`.
#[derive(Default)]
pub struct ModelSettings {
    /// Tokens of a sequence; `None` for those of the [server](crate::ServerOptions::context).
    pub context: Option<u32>,
    /// The system prompt of conversations that have no system prompt.
    pub system: Option<String>,
    /// How tokens are drawn where a request does not say it; where this does not either, as suits the model.
    pub sampling: SamplingOptions,
    /// Files of LoRA adapters, with their scales.
    pub adapters: Vec<(PathBuf, f32)>,
    /// A smaller model that guesses tokens.
    pub draft: Option<OpenModel>,
    /// How many it guesses in each step; `None` for as many as save time.
    pub draft_tokens: Option<usize>,
    /// Makes room for further options.
    #[doc(hidden)]
    pub _more: (),
}

impl Source {
    /// A model that is unloaded when it is not used.
    pub fn new(
        name: impl Into<String>,
        open: impl Fn() -> Result<Served, OpenError> + Send + Sync + 'static,
    ) -> Source {
        Source {
            name: name.into(),
            aliases: Vec::new(),
            open: Box::new(open),
            pinned: false,
            settings: ModelSettings::default(),
        }
    }
}

/// A model, by the kind of requests that it answers.
#[non_exhaustive]
pub enum Served {
    /// Answers, and vectors of texts.
    Model(Model),
    /// Vectors of texts.
    Embedder(Embedder),
    /// How well documents answer a question.
    Reranker(Reranker),
    /// Texts of recordings.
    Transcriber(Box<Transcriber>),
}

impl Served {
    /// Opens a model as what it is.
    pub fn open(
        path: &Path,
        device: Device,
        options: ModelOptions,
    ) -> Result<Served, akunu::Error> {
        if akunu::is_speech(path) {
            let transcriber = Transcriber::open_on(path, device)?;
            return Ok(Served::Transcriber(Box::new(transcriber)));
        }
        if !akunu::is_encoder(path)? {
            let model = Model::open_with(path, device, options)?;
            if let Some(conversion) = model.conversion() {
                tracing::info!("{conversion}");
            }
            return Ok(model.into());
        }
        let encoder = Encoder::load(path, device.open()?)?;
        Ok(match encoder.config().n_labels() {
            0 => Served::Embedder(encoder.into()),
            _ => Served::Reranker(encoder.try_into()?),
        })
    }
}

impl Served {
    /// What it is asked for.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Served::Model(_) => Kind::Answers,
            Served::Embedder(_) | Served::Reranker(_) => Kind::Texts,
            Served::Transcriber(_) => Kind::Recordings,
        }
    }
}

impl From<Model> for Served {
    fn from(model: Model) -> Served {
        Served::Model(model)
    }
}
