//! The models of a server: known by name, loaded when somebody asks for one, unloaded when nobody does.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use akunu::Model;

use crate::engine::Engine;
use crate::error::{ApiError, ServerError};
use crate::options::ServerOptions;

/// Where a model comes from.
pub struct Source {
    /// What clients call it.
    pub name: String,
    /// Opens it. It is called whenever the model is asked for and not loaded.
    pub open: Box<dyn Fn() -> Result<Model, OpenError> + Send + Sync>,
}

/// Why a model cannot be opened.
pub type OpenError = Box<dyn std::error::Error + Send + Sync>;

/// A model that may be loaded.
pub(crate) struct Entry {
    pub name: String,
    source: Source,
    /// Held while it is loaded, so that it is loaded once.
    loaded: tokio::sync::Mutex<Option<Arc<Engine>>>,
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

    /// The engine of a model, which is loaded first if need be.
    pub async fn engine(&self, name: Option<&str>) -> Result<Arc<Engine>, ApiError> {
        let entry = Arc::clone(self.find(name)?);
        entry.touch();
        let mut loaded = entry.loaded.lock().await;
        if let Some(engine) = loaded.as_ref().filter(|engine| engine.is_alive()) {
            return Ok(Arc::clone(engine));
        }
        let options = self.options.clone();
        let opened = Arc::clone(&entry);
        let opening = tokio::task::spawn_blocking(move || opened.open(&options));
        let engine = opening.await.map_err(|error| ApiError::internal(&error))?;
        let engine = Arc::new(engine.map_err(|error| ApiError::internal(&error))?);
        *loaded = Some(Arc::clone(&engine));
        tracing::info!(model = entry.name, "loaded");
        Ok(engine)
    }

    /// Loads the first model: what is wrong with it is told before anybody asks.
    pub fn load_first(&self) -> Result<(), ServerError> {
        let Some(first) = self.entries.first() else {
            return Err(ServerError::NoModel);
        };
        let engine = first.open(&self.options)?;
        if let Ok(mut loaded) = first.loaded.try_lock() {
            *loaded = Some(Arc::new(engine));
        }
        Ok(())
    }

    /// Unloads what nobody has asked for since a while.
    pub fn unload_idle(&self, keep: Duration) {
        for entry in &self.entries {
            // Somebody who holds it is about to use it.
            let Ok(mut loaded) = entry.loaded.try_lock() else {
                continue;
            };
            let is_idle = loaded.as_ref().is_some_and(|engine| engine.is_idle());
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
    fn open(&self, options: &ServerOptions) -> Result<Engine, ServerError> {
        let model = (self.source.open)().map_err(ServerError::Open)?;
        Engine::start(model, options)
    }

    /// The engine, if the model is loaded now.
    pub fn loaded(&self) -> Option<Arc<Engine>> {
        self.loaded.try_lock().ok()?.clone()
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
