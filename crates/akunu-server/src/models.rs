//! The models of a server: known by name, loaded when somebody asks for one, unloaded when nobody does.

use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use akunu::{Device, Embedder, Encoder, Model, ModelOptions, Reranker, Transcriber};

use crate::engine::Engine;
use crate::error::{ApiError, OpenError, ServerError};
use crate::options::ServerOptions;
use crate::speech::Speech;

/// Where a model comes from.
pub struct Source {
    /// What clients call it.
    pub name: String,
    /// Opens it. It is called whenever the model is asked for and not loaded.
    pub open: Box<dyn Fn() -> Result<Served, OpenError> + Send + Sync>,
    /// Whether it stays loaded, once somebody has asked for it.
    pub pinned: bool,
}

impl Source {
    /// A model that is unloaded when nobody uses it.
    pub fn new(
        name: impl Into<String>,
        open: impl Fn() -> Result<Served, OpenError> + Send + Sync + 'static,
    ) -> Source {
        Source {
            name: name.into(),
            open: Box::new(open),
            pinned: false,
        }
    }
}

/// A model, by what it can be asked for.
#[non_exhaustive]
pub enum Served {
    /// Answers, and vectors of texts.
    Model(Model),
    /// Vectors of texts.
    Embedder(Embedder),
    /// How well documents answer a question.
    Reranker(Reranker),
    /// What is said in recordings.
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

impl From<Model> for Served {
    fn from(model: Model) -> Served {
        Served::Model(model)
    }
}

/// A model that is loaded.
#[derive(Clone)]
pub(crate) enum Loaded {
    Engine(Arc<Engine>),
    Embedder(Embedder),
    Reranker(Reranker),
    Speech(Speech),
}

impl Loaded {
    /// Whether it can still be asked.
    fn is_alive(&self) -> bool {
        match self {
            Loaded::Engine(engine) => engine.is_alive(),
            Loaded::Embedder(_) | Loaded::Reranker(_) | Loaded::Speech(_) => true,
        }
    }

    /// Whether it has nothing to do.
    fn is_idle(&self) -> bool {
        match self {
            Loaded::Engine(engine) => engine.is_idle(),
            Loaded::Speech(speech) => speech.is_idle(),
            Loaded::Embedder(_) | Loaded::Reranker(_) => true,
        }
    }
}

/// How long a model that was unloaded needs to give its memory back.
const SETTLING: Duration = Duration::from_millis(200);

/// A model that may be loaded.
pub(crate) struct Entry {
    pub name: String,
    source: Source,
    /// Held while it is loaded, so that it is loaded once.
    loaded: tokio::sync::Mutex<Option<Loaded>>,
    last_used: std::sync::Mutex<Instant>,
}

/// All models of a server.
pub(crate) struct Models {
    entries: Vec<Arc<Entry>>,
    options: ServerOptions,
    /// Seconds since 1970, for lists.
    pub created: u64,
}

impl Models {
    /// Refuses models that clients could not tell apart.
    pub fn new(sources: Vec<Source>, options: &ServerOptions) -> Result<Models, ServerError> {
        if sources.is_empty() {
            return Err(ServerError::NoModel);
        }
        let mut entries: Vec<Arc<Entry>> = Vec::new();
        for source in sources {
            if entries.iter().any(|entry| entry.name == source.name) {
                return Err(ServerError::SameName(source.name));
            }
            entries.push(Arc::new(Entry {
                name: source.name.clone(),
                source,
                loaded: tokio::sync::Mutex::new(None),
                last_used: std::sync::Mutex::new(Instant::now()),
            }));
        }
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Ok(Models {
            entries,
            options: options.clone(),
            created: since_1970.map_or(0, |time| time.as_secs()),
        })
    }

    pub fn all(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// The model of this name; without a name, the first. Ollama's clients write `name:latest`.
    pub fn find(&self, name: Option<&str>) -> Result<&Arc<Entry>, ApiError> {
        let name = name.unwrap_or_default();
        let plain = name.strip_suffix(":latest").unwrap_or(name);
        let is_it = |entry: &&Arc<Entry>| name.is_empty() || entry.name == plain;
        self.entries.iter().find(is_it).ok_or_else(|| {
            let known: Vec<&str> = self.entries.iter().map(|entry| &*entry.name).collect();
            let known = known.join(", ");
            ApiError {
                param: Some("model".into()),
                code: Some("model_not_found"),
                ..ApiError::not_found(format!(
                    "there is no model `{name}` here; there are: {known}"
                ))
            }
        })
    }

    /// The engine of a model that generates text, which is loaded first if need be.
    pub async fn engine(&self, name: Option<&str>) -> Result<Arc<Engine>, ApiError> {
        match self.load(name).await? {
            Loaded::Engine(engine) => Ok(engine),
            Loaded::Embedder(_) | Loaded::Reranker(_) => Err(ApiError::bad_field(
                "model",
                "this model does not generate text; ask it for embeddings or rankings",
            )),
            Loaded::Speech(_) => Err(ApiError::bad_field(
                "model",
                "this model does not generate text; ask it for transcriptions",
            )),
        }
    }

    /// A model, which is loaded first if need be.
    pub async fn load(&self, name: Option<&str>) -> Result<Loaded, ApiError> {
        let entry = Arc::clone(self.find(name)?);
        entry.touch();
        let mut loaded = entry.loaded.lock().await;
        if let Some(loaded) = loaded.as_ref().filter(|loaded| loaded.is_alive()) {
            return Ok(loaded.clone());
        }
        self.make_room(&entry).await;
        let options = self.options.clone();
        let opened = Arc::clone(&entry);
        let opening = tokio::task::spawn_blocking(move || opened.open(&options));
        let opened = opening.await.map_err(|error| ApiError::internal(&error))?;
        let opened = opened.map_err(|error| ApiError::internal(&error))?;
        *loaded = Some(opened.clone());
        tracing::info!(model = entry.name, "loaded");
        Ok(opened)
    }

    /// Unloads models that have nothing to do, the one that was asked for longest ago first, as long as memory is short.
    async fn make_room(&self, wanted: &Arc<Entry>) {
        while self.options.keep.is_some()
            && (self.options.memory_is_short)()
            && self.unload_oldest(wanted)
        {
            tokio::time::sleep(SETTLING).await;
        }
    }

    /// Unloads the idle model that was asked for longest ago, other than this one; whether there was one.
    fn unload_oldest(&self, wanted: &Arc<Entry>) -> bool {
        let others = self.entries.iter();
        let others = others
            .filter(|entry| !Arc::ptr_eq(entry, wanted) && !entry.source.pinned && entry.is_idle());
        let Some(oldest) = others.max_by_key(|entry| entry.unused_for()) else {
            return false;
        };
        // Somebody who holds it is about to use it.
        let Ok(mut loaded) = oldest.loaded.try_lock() else {
            return false;
        };
        *loaded = None;
        tracing::info!(model = oldest.name, "unloaded, since memory is short");
        true
    }

    /// Loads the first model, so that a problem with it is reported before the first request.
    pub fn load_first(&self) -> Result<(), ServerError> {
        let Some(first) = self.entries.first() else {
            return Err(ServerError::NoModel);
        };
        let opened = first.open(&self.options)?;
        if let Ok(mut loaded) = first.loaded.try_lock() {
            *loaded = Some(opened);
        }
        Ok(())
    }

    /// Unloads models that have not been used for a while.
    pub fn unload_idle(&self, keep: Duration) {
        for entry in self.entries.iter().filter(|entry| !entry.source.pinned) {
            // Somebody who holds it is about to use it.
            let Ok(mut loaded) = entry.loaded.try_lock() else {
                continue;
            };
            let is_idle = loaded.as_ref().is_some_and(Loaded::is_idle);
            if !is_idle {
                entry.touch();
            } else if entry.unused_for() > keep {
                *loaded = None;
                tracing::info!(model = entry.name, "unloaded");
            }
        }
    }
}

impl Entry {
    fn open(&self, options: &ServerOptions) -> Result<Loaded, ServerError> {
        Ok(match (self.source.open)().map_err(ServerError::Open)? {
            Served::Model(model) => Loaded::Engine(Arc::new(Engine::start(model, options)?)),
            Served::Embedder(embedder) => Loaded::Embedder(embedder),
            Served::Reranker(reranker) => Loaded::Reranker(reranker),
            Served::Transcriber(transcriber) => {
                Loaded::Speech(Speech::new(*transcriber, options.transcribe_batch)?)
            }
        })
    }

    /// The model, if it is loaded now.
    pub fn now(&self) -> Option<Loaded> {
        self.loaded.try_lock().ok()?.clone()
    }

    /// The engine, if the model is loaded now and generates text.
    pub fn loaded(&self) -> Option<Arc<Engine>> {
        match self.now()? {
            Loaded::Engine(engine) => Some(engine),
            Loaded::Embedder(_) | Loaded::Reranker(_) | Loaded::Speech(_) => None,
        }
    }

    /// Whether it is loaded and has nothing to do.
    fn is_idle(&self) -> bool {
        let loaded = self.loaded.try_lock();
        loaded.is_ok_and(|loaded| loaded.as_ref().is_some_and(Loaded::is_idle))
    }

    fn touch(&self) {
        *self.last_used() = Instant::now();
    }

    fn unused_for(&self) -> Duration {
        self.last_used().elapsed()
    }

    fn last_used(&self) -> std::sync::MutexGuard<'_, Instant> {
        let last = self.last_used.lock();
        last.unwrap_or_else(PoisonError::into_inner)
    }
}
