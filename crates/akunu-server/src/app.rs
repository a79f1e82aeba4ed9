//! What every request can reach.

use std::sync::{Arc, OnceLock};

use axum::body::Bytes;
use tokio::sync::Semaphore;

use crate::kept::Kept;
use crate::models::Models;
use crate::options::ServerOptions;
use crate::stats::HttpRequests;

/// The state of a server. Clones share it.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

pub(crate) struct Shared {
    pub options: ServerOptions,
    pub models: Models,
    /// One for each recording that may be in memory.
    pub recordings: Arc<Semaphore>,
    pub http_requests: HttpRequests,
    /// Conversations that can be gone on with.
    pub kept: Kept,
    /// The OpenAPI document, once somebody has asked for it.
    pub document: OnceLock<Bytes>,
}

impl App {
    pub fn new(options: ServerOptions, models: Models) -> App {
        App(Arc::new(Shared {
            recordings: Arc::new(Semaphore::new(options.limits.recordings)),
            http_requests: HttpRequests::default(),
            kept: Kept::new(options.limits.kept_bytes),
            document: OnceLock::new(),
            options,
            models,
        }))
    }
}

impl std::ops::Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}
