//! Which path is answered by what: one table, from which the router and `/openapi.json` are made.

mod openapi;

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, get, post};
use tokio::sync::Semaphore;

use crate::error::ApiError;
use crate::models::Models;
use crate::options::ServerOptions;
use crate::{anthropic, guard, metrics, native, ollama, openai, page, rerank};

/// What every request can reach. Clones share it.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

pub(crate) struct Shared {
    pub options: ServerOptions,
    pub models: Models,
    /// One for each recording that may be in memory.
    pub recordings: Arc<Semaphore>,
}

impl App {
    pub fn new(options: ServerOptions, models: Models) -> App {
        App(Arc::new(Shared {
            recordings: Arc::new(Semaphore::new(options.limits.recordings)),
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

/// A path: what it is for, who answers, and what a body must have. Paths with a body take POST, the others GET.
struct Endpoint {
    path: &'static str,
    what: &'static str,
    handler: fn() -> MethodRouter<App>,
    body: Body,
}

/// Names of fields that are needed, and their JSON types: none for any, `file` for bytes.
type Needs = &'static [(&'static str, &'static str)];

/// What a request has besides its path.
enum Body {
    Nothing,
    Json(Needs),
    /// `multipart/form-data`
    Form(Needs),
}

/// A row of the table for a path without a body.
const fn look(
    path: &'static str,
    what: &'static str,
    handler: fn() -> MethodRouter<App>,
) -> Endpoint {
    Endpoint {
        path,
        what,
        handler,
        body: Body::Nothing,
    }
}

/// A row of the table for a path with a body that needs these fields.
const fn ask(
    path: &'static str,
    what: &'static str,
    handler: fn() -> MethodRouter<App>,
    needs: Needs,
) -> Endpoint {
    Endpoint {
        path,
        what,
        handler,
        body: Body::Json(needs),
    }
}

/// A row of the table for a path that takes a form with these fields.
const fn send(
    path: &'static str,
    what: &'static str,
    handler: fn() -> MethodRouter<App>,
    needs: Needs,
) -> Endpoint {
    Endpoint {
        path,
        what,
        handler,
        body: Body::Form(needs),
    }
}

const MESSAGES: (&str, &str) = ("messages", "array");
const MODEL: (&str, &str) = ("model", "string");

const ENDPOINTS: &[Endpoint] = &[
    ask(
        "/v1/chat/completions",
        "Answer a conversation (OpenAI)",
        || post(openai::chat),
        &[MESSAGES],
    ),
    ask(
        "/v1/completions",
        "Continue a text (OpenAI)",
        || post(openai::completions),
        &[("prompt", "")],
    ),
    ask(
        "/v1/responses",
        "Answer as a list of items (OpenAI)",
        || post(openai::responses),
        &[("input", "")],
    ),
    ask(
        "/v1/embeddings",
        "Texts as vectors (OpenAI)",
        || post(openai::embeddings),
        &[("input", "")],
    ),
    ask(
        "/v1/rerank",
        "Documents by how well they answer a question",
        || post(rerank::rerank),
        &[("query", "string"), ("documents", "")],
    ),
    send(
        "/v1/audio/transcriptions",
        "What is said in a recording (OpenAI)",
        || post(openai::transcriptions),
        &[("file", "file")],
    ),
    send(
        "/v1/audio/translations",
        "The same in English (OpenAI)",
        || post(openai::translations),
        &[("file", "file")],
    ),
    look("/v1/models", "The models (OpenAI)", || get(openai::models)),
    look("/v1/models/{name}", "One model (OpenAI)", || {
        get(openai::model)
    }),
    ask(
        "/v1/messages",
        "Answer a conversation (Anthropic)",
        || post(anthropic::messages),
        &[MESSAGES, ("max_tokens", "integer")],
    ),
    ask(
        "/v1/messages/count_tokens",
        "Tokens of a conversation (Anthropic)",
        || post(anthropic::count_tokens),
        &[MESSAGES],
    ),
    ask(
        "/api/chat",
        "Answer a conversation (Ollama)",
        || post(ollama::chat),
        &[MODEL],
    ),
    ask(
        "/api/generate",
        "Answer a question (Ollama)",
        || post(ollama::generate),
        &[MODEL],
    ),
    ask(
        "/api/embed",
        "Texts as vectors (Ollama)",
        || post(ollama::embed),
        &[MODEL, ("input", "")],
    ),
    look("/api/tags", "The models (Ollama)", || get(ollama::tags)),
    ask(
        "/api/show",
        "What a model is (Ollama)",
        || post(ollama::show),
        &[MODEL],
    ),
    look(
        "/api/version",
        "The version of this server (Ollama)",
        || get(ollama::version),
    ),
    ask(
        "/tokenize",
        "Text to tokens",
        || post(native::tokenize),
        &[("content", "string")],
    ),
    ask(
        "/detokenize",
        "Tokens to text",
        || post(native::detokenize),
        &[("tokens", "array")],
    ),
    ask(
        "/apply-template",
        "A conversation as the model reads it",
        || post(native::apply_template),
        &[MESSAGES],
    ),
    look("/health", "Whether the server is up", || {
        get(native::health)
    }),
    look("/metrics", "Counters for Prometheus", || {
        get(metrics::metrics)
    }),
    look("/openapi.json", "This list", || get(openapi::document)),
];

/// All paths, behind the guard.
pub(crate) fn service(app: App) -> Router {
    let mut router = Router::new()
        .route("/", get(page::page))
        .route("/page/{file}", get(page::page));
    for endpoint in ENDPOINTS {
        router = router.route(endpoint.path, (endpoint.handler)());
    }
    router
        .fallback(|| async { ApiError::not_found("there is nothing at this path") })
        .method_not_allowed_fallback(|| async {
            ApiError::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "invalid_request_error",
                "this path takes another method",
            )
        })
        .layer(from_fn_with_state(app.clone(), guard::guard))
        .with_state(app)
}
