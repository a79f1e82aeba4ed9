//! The models of a server: known by name, loaded when somebody asks for one, unloaded when nobody does.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::engine::Engine;
use crate::error::{ApiError, ServerError};
use crate::loaded::Loaded;
use crate::options::ServerOptions;
use crate::source::{Served, Source};
use crate::speech::Speech;
use crate::stats::Stats;

/// How long a model that was unloaded needs to give its memory back.
const SETTLING: Duration = Duration::from_millis(200);

/// A model that may be loaded.
pub(crate) struct Entry {
    pub name: String,
    source: Source,
    /// Held while it is loaded, so that it is loaded once.
    loaded: tokio::sync::Mutex<Option<Loaded>>,
    last_used: std::sync::Mutex<Instant>,
    pub stats: Arc<Stats>,
}

/// All models of a server.
pub(crate) struct Models {
    entries: Vec<Arc<Entry>>,
    /// The one that is asked where none of these is named.
    default: Option<usize>,
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
            let known = |name: &&String| entries.iter().any(|entry| entry.is_called(name));
            let same = source.aliases.iter().chain([&source.name]).find(known);
            if let Some(name) = same {
                return Err(ServerError::SameName(name.clone()));
            }
            entries.push(Arc::new(Entry {
                name: source.name.clone(),
                source,
                loaded: tokio::sync::Mutex::new(None),
                last_used: std::sync::Mutex::new(Instant::now()),
                stats: Arc::new(Stats::default()),
            }));
        }
        let default = match &options.default_model {
            None => None,
            Some(name) => {
                let found = entries.iter().position(|entry| entry.is_called(name));
                Some(found.ok_or_else(|| ServerError::DefaultModel(name.clone()))?)
            }
        };
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Ok(Models {
            entries,
            default,
            options: options.clone(),
            created: since_1970.map_or(0, |time| time.as_secs()),
        })
    }

    pub fn all(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// The model of this name; without a name, the default or the first, and with one that no model has, the default if there is one.
    pub fn find(&self, name: Option<&str>) -> Result<&Arc<Entry>, ApiError> {
        let name = name.unwrap_or_default();
        let default = || self.default.and_then(|at| self.entries.get(at));
        match self.named(name).or_else(default) {
            Some(entry) => Ok(entry),
            None if name.is_empty() => self.entries.first().ok_or_else(|| self.unknown(name)),
            None => Err(self.unknown(name)),
        }
    }

    /// The model that has this name. Ollama's clients write `name:latest`.
    pub fn named(&self, name: &str) -> Option<&Arc<Entry>> {
        let plain = name.strip_suffix(":latest").unwrap_or(name);
        self.entries.iter().find(|entry| entry.is_called(plain))
    }

    /// There is no model of this name.
    pub fn unknown(&self, name: &str) -> ApiError {
        let known: Vec<&str> = self.names().map(|(name, _)| name).collect();
        let known = known.join(", ");
        ApiError {
            param: Some("model".into()),
            code: Some("model_not_found"),
            ..ApiError::not_found(format!(
                "there is no model `{name}` here; there are: {known}"
            ))
        }
    }

    /// All names of all models.
    pub fn names(&self) -> impl Iterator<Item = (&str, &Arc<Entry>)> {
        self.entries.iter().flat_map(|entry| {
            let names = [&entry.name].into_iter().chain(&entry.source.aliases);
            names.map(move |name| (name.as_str(), entry))
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

    /// Loads the default or the first model, so that a problem with it is reported before the first request.
    pub fn load_first(&self) -> Result<(), ServerError> {
        let Some(first) = self.entries.get(self.default.unwrap_or(0)) else {
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
    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.source.aliases.iter().any(|alias| alias == name)
    }

    fn open(&self, options: &ServerOptions) -> Result<Loaded, ServerError> {
        let served = (self.source.open)().map_err(ServerError::Open)?;
        self.stats.kind.get_or_init(|| served.kind());
        Ok(match served {
            Served::Model(model) => {
                let engine = Engine::start(
                    model,
                    options,
                    &self.source.settings,
                    Arc::clone(&self.stats),
                )?;
                Loaded::Engine(Arc::new(engine))
            }
            Served::Embedder(embedder) => Loaded::Embedder(embedder),
            Served::Reranker(reranker) => Loaded::Reranker(reranker),
            Served::Transcriber(transcriber) => {
                let stats = Arc::clone(&self.stats);
                Loaded::Speech(Speech::new(*transcriber, options.transcribe_batch, stats)?)
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

    /// Unloads it, unless it is pinned, as soon as it has answered what it was asked.
    pub fn forget(&self) {
        // Somebody who holds it is about to use it.
        if let Ok(mut loaded) = self.loaded.try_lock()
            && !self.is_pinned()
        {
            *loaded = None;
            tracing::info!(model = self.name, "unloaded, as a request wants it");
        }
    }

    pub fn is_pinned(&self) -> bool {
        self.source.pinned
    }

    fn touch(&self) {
        *self.last_used() = Instant::now();
    }

    /// How long ago it was asked for.
    pub fn unused_for(&self) -> Duration {
        self.last_used().elapsed()
    }

    fn last_used(&self) -> std::sync::MutexGuard<'_, Instant> {
        let last = self.last_used.lock();
        last.unwrap_or_else(PoisonError::into_inner)
    }
}
