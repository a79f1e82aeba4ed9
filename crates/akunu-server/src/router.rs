//! Which path is answered by what: one table, from which the router and `/openapi.json` are made.

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use schemars::SchemaGenerator;
use serde_json::{Map, Value};

use crate::app::App;
use crate::error::ApiError;
use crate::openapi::{Endpoint, describe};
use crate::reply::{Answer, Content};
use crate::{anthropic, guard, metrics, native, ollama, openai, page};

/// All paths but those of the page.
fn endpoints() -> Vec<Endpoint> {
    [openai_endpoints(), other_dialects(), own_endpoints()]
        .into_iter()
        .flatten()
        .collect()
}

fn openai_endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::post(
            "/v1/chat/completions",
            "Answer a conversation (OpenAI)",
            openai::chat,
        ),
        Endpoint::post(
            "/v1/completions",
            "Continue a text (OpenAI)",
            openai::completions,
        ),
        Endpoint::post(
            "/v1/responses",
            "Answer as a list of items (OpenAI)",
            openai::responses,
        ),
        Endpoint::post(
            "/v1/embeddings",
            "Texts as vectors (OpenAI)",
            openai::embeddings,
        ),
        Endpoint::post(
            "/v1/audio/transcriptions",
            "What is said in a recording (OpenAI)",
            openai::transcriptions,
        ),
        Endpoint::post(
            "/v1/audio/translations",
            "The same in English (OpenAI)",
            openai::translations,
        ),
        Endpoint::get("/v1/models", "The models (OpenAI)", openai::models),
        Endpoint::get_named("/v1/models/{name}", "One model (OpenAI)", openai::model),
    ]
}

fn other_dialects() -> Vec<Endpoint> {
    vec![
        Endpoint::post(
            "/v1/messages",
            "Answer a conversation (Anthropic)",
            anthropic::messages,
        ),
        Endpoint::post(
            "/v1/messages/count_tokens",
            "Tokens of a conversation (Anthropic)",
            anthropic::count_tokens,
        ),
        Endpoint::post("/api/chat", "Answer a conversation (Ollama)", ollama::chat),
        Endpoint::post(
            "/api/generate",
            "Answer a question (Ollama)",
            ollama::generate,
        ),
        Endpoint::post("/api/embed", "Texts as vectors (Ollama)", ollama::embed),
        Endpoint::post(
            "/api/embeddings",
            "A text as a vector (Ollama, older)",
            ollama::embeddings,
        ),
        Endpoint::get(
            "/api/ps",
            "The models that are loaded (Ollama)",
            ollama::running,
        ),
        Endpoint::get("/api/tags", "The models (Ollama)", ollama::tags),
        Endpoint::post("/api/show", "What a model is (Ollama)", ollama::show),
        Endpoint::get(
            "/api/version",
            "The version of this server (Ollama)",
            ollama::version,
        ),
    ]
}

fn own_endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::post(
            "/v1/rerank",
            "Documents by how well they answer a question",
            native::rerank,
        ),
        Endpoint::post("/v2/rerank", "The same (Cohere)", native::rerank),
        Endpoint::post("/rerank", "The same (Jina, llama.cpp)", native::rerank),
        Endpoint::post(
            "/completion",
            "Continue a text (llama.cpp)",
            native::completion,
        ),
        Endpoint::post(
            "/infill",
            "Fill a gap in a text (llama.cpp)",
            native::infill,
        ),
        Endpoint::get("/props", "What this server is (llama.cpp)", native::props),
        Endpoint::get("/slots", "What it works on (llama.cpp)", native::slots),
        Endpoint::post("/tokenize", "Text to tokens", native::tokenize),
        Endpoint::post("/detokenize", "Tokens to text", native::detokenize),
        Endpoint::post(
            "/apply-template",
            "A conversation as the model reads it",
            native::apply_template,
        ),
        Endpoint::get("/health", "Whether the server is up", native::health),
        Endpoint::get("/metrics", "Counters for Prometheus", metrics::metrics),
        Endpoint::get("/openapi.json", "This list", document),
    ]
}

/// All paths, with who answers.
fn routes() -> Router<App> {
    let page = Router::new()
        .route("/", get(page::page))
        .route("/page/{file}", get(page::page));
    endpoints().into_iter().fold(page, |router, endpoint| {
        router.route(endpoint.path, endpoint.route)
    })
}

/// All paths, behind the guard.
pub(crate) fn service(app: App) -> Router {
    routes()
        .fallback(|| async { ApiError::not_found("there is nothing at this path") })
        .method_not_allowed_fallback(|| async {
            ApiError::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "invalid_request_error",
                "this path takes another method",
            )
        })
        .layer(from_fn_with_state(app.clone(), guard::guard))
        .layer(from_fn(write_error))
        .with_state(app)
}

/// `/openapi.json`
async fn document(State(app): State<App>) -> Result<Described, ApiError> {
    let document = app.document.get_or_init(|| {
        let models: Vec<&str> = app.models.names().map(|(name, _)| name).collect();
        let errors = |path: &str, schemas: &mut SchemaGenerator| Dialect::of(path).errors(schemas);
        let document = describe(&endpoints(), &models, errors);
        // Strings, numbers and lists of them can always be written.
        serde_json::to_vec(&document).unwrap_or_default().into()
    });
    Ok(Described(document.clone()))
}

/// The document, which describes everything but itself.
struct Described(Bytes);

impl IntoResponse for Described {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "application/json")], self.0).into_response()
    }
}

impl Answer for Described {
    fn content(schemas: &mut SchemaGenerator) -> Content {
        axum::Json::<Map<String, Value>>::content(schemas)
    }
}

/// Who speaks to a path.
#[derive(Clone, Copy)]
enum Dialect {
    OpenAi,
    Anthropic,
    Ollama,
}

impl Dialect {
    fn of(path: &str) -> Dialect {
        if path.starts_with("/api/") {
            Dialect::Ollama
        } else if path.starts_with("/v1/messages") {
            Dialect::Anthropic
        } else {
            Dialect::OpenAi
        }
    }

    /// The body that its clients expect when something is wrong.
    fn error(self, error: &ApiError) -> Response {
        match self {
            Dialect::OpenAi => axum::Json(openai::ErrorBody::from(error)).into_response(),
            Dialect::Anthropic => axum::Json(anthropic::MessageError::from(error)).into_response(),
            Dialect::Ollama => axum::Json(ollama::OllamaError::from(error)).into_response(),
        }
    }

    fn errors(self, schemas: &mut SchemaGenerator) -> Content {
        match self {
            Dialect::OpenAi => axum::Json::<openai::ErrorBody>::content(schemas),
            Dialect::Anthropic => axum::Json::<anthropic::MessageError>::content(schemas),
            Dialect::Ollama => axum::Json::<ollama::OllamaError>::content(schemas),
        }
    }
}

/// Writes an error, which handlers and the guard leave in the extensions, as clients of the path expect it.
async fn write_error(request: Request, next: Next) -> Response {
    let dialect = Dialect::of(request.uri().path());
    let mut response = next.run(request).await;
    let Some(error) = response.extensions_mut().remove::<ApiError>() else {
        return response;
    };
    let (mut parts, _) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    (parts.status, parts.headers, dialect.error(&error)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Breaks when a path is answered that the document does not have, or described and not answered. The router lists its paths only
    /// where it is printed for developers.
    #[test]
    fn the_document_has_the_paths_of_the_router() {
        let printed = format!("{:?}", routes());
        let quoted = printed.split('"').filter(|text| text.starts_with('/'));
        let ours = quoted.filter(|path| !page::has(path) && !path.contains("__private"));
        let answered: BTreeSet<&str> = ours.collect();
        let table = endpoints();
        let mut described: BTreeSet<&str> = table.iter().map(|endpoint| endpoint.path).collect();
        assert_eq!(described.len(), table.len(), "a path is there twice");
        described.insert("/page/{file}");
        assert_eq!(answered, described);
    }
}
