//! `/api/tags`, `/api/show` and `/api/version`

use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};

use super::time;
use crate::body::Json;
use crate::error::ApiError;
use crate::models::Loaded;
use crate::router::App;

/// All models, loaded or not.
pub(crate) async fn tags(State(app): State<App>) -> axum::Json<Value> {
    let modified = time(app.models.created);
    let entries = app.models.all().iter();
    let models = entries.map(|entry| {
        let now = entry.now();
        let size = match &now {
            Some(Loaded::Engine(engine)) => engine.model.weight_bytes(),
            _ => 0,
        };
        json!({
            "name": entry.name,
            "model": entry.name,
            "modified_at": modified,
            "size": size,
            "digest": "",
            "details": details(now.as_ref()),
        })
    });
    axum::Json(json!({"models": models.collect::<Vec<Value>>()}))
}

#[derive(Deserialize)]
pub(crate) struct Show {
    #[serde(alias = "name")]
    model: String,
}

/// The format of a model's files, as far as it is known: that of one that is not loaded is not.
fn details(model: Option<&Loaded>) -> Value {
    let path = match model {
        Some(Loaded::Engine(engine)) => engine.model.path(),
        Some(Loaded::Embedder(embedder)) => embedder.path(),
        Some(Loaded::Reranker(_) | Loaded::Speech(_)) | None => return json!({}),
    };
    let is_gguf = path
        .extension()
        .is_some_and(|it| it.eq_ignore_ascii_case("gguf"));
    json!({"format": if is_gguf { "gguf" } else { "safetensors" }})
}

/// What a model is.
pub(crate) async fn show(
    State(app): State<App>,
    Json(asked): Json<Show>,
) -> Result<axum::Json<Value>, ApiError> {
    let model = app.models.load(Some(&asked.model)).await?;
    let (capabilities, info) = match &model {
        Loaded::Engine(engine) => {
            let config = engine.model.config();
            let info = json!({
                "general.architecture": config.arch,
                "context_length": config.context_length,
                "served_context_length": engine.context,
                "embedding_length": config.dim,
                "block_count": config.layers.len(),
                "vocab_size": config.vocab_size,
            });
            (json!(["completion", "tools", "embedding"]), info)
        }
        Loaded::Embedder(embedder) => {
            let info = json!({
                "context_length": embedder.max_tokens(),
                "embedding_length": embedder.dimensions(),
            });
            (json!(["embedding"]), info)
        }
        Loaded::Reranker(reranker) => {
            let info = json!({"context_length": reranker.max_tokens()});
            (json!(["rerank"]), info)
        }
        Loaded::Speech(_) => (
            json!(["transcription"]),
            json!({"general.architecture": "whisper"}),
        ),
    };
    Ok(axum::Json(json!({
        "details": details(Some(&model)),
        "capabilities": capabilities,
        "model_info": info,
    })))
}

/// Which protocol this is; clients want a version of at least 0.1.
pub(crate) async fn version() -> axum::Json<Value> {
    axum::Json(json!({"version": env!("CARGO_PKG_VERSION")}))
}
