//! A model that is loaded, by what it can be asked for.

use std::sync::Arc;

use akunu::{Embedder, Reranker};

use crate::engine::Engine;
use crate::speech::Speech;

/// A model that is loaded.
#[derive(Clone)]
pub(crate) enum Loaded {
    Engine(Arc<Engine>),
    Embedder(Embedder),
    Reranker(Reranker),
    Speech(Speech),
}

impl Loaded {
    /// Bytes of its weights, where they are known.
    pub fn weight_bytes(&self) -> u64 {
        match self {
            Loaded::Engine(engine) => engine.model.weight_bytes(),
            Loaded::Embedder(_) | Loaded::Reranker(_) | Loaded::Speech(_) => 0,
        }
    }

    /// Whether it can still be asked.
    pub fn is_alive(&self) -> bool {
        match self {
            Loaded::Engine(engine) => engine.is_alive(),
            Loaded::Embedder(_) | Loaded::Reranker(_) | Loaded::Speech(_) => true,
        }
    }

    /// Tokens of a text that it reads at most.
    pub fn max_tokens(&self) -> usize {
        match self {
            Loaded::Engine(engine) => engine.context as usize,
            Loaded::Embedder(embedder) => embedder.max_tokens(),
            Loaded::Reranker(reranker) => reranker.max_tokens(),
            Loaded::Speech(_) => 0,
        }
    }

    /// Whether it has nothing to do.
    pub fn is_idle(&self) -> bool {
        match self {
            Loaded::Engine(engine) => engine.is_idle(),
            Loaded::Speech(speech) => speech.is_idle(),
            Loaded::Embedder(_) | Loaded::Reranker(_) => true,
        }
    }
}
