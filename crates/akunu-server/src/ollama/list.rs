//! `/api/tags`, `/api/show` and `/api/version`

use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};

use super::time;
use crate::body::Json;
use crate::error::ApiError;
use crate::router::App;

/// All models, loaded or not.
pub(crate) async fn tags(State(app): State<App>) -> axum::Json<Value> {
    let modified = time(app.models.created);
    let entries = app.models.all().iter();
    let models = entries.map(|entry| {
        let size = entry
            .loaded()
            .map_or(0, |engine| engine.model.weight_bytes());
        json!({
            "name": entry.name,
            "model": entry.name,
            "modified_at": modified,
            "size": size,
            "digest": "",
            "details": {"format": "gguf"},
        })
    });
    axum::Json(json!({"models": models.collect::<Vec<Value>>()}))
}

#[derive(Deserialize)]
pub(crate) struct Show {
    #[serde(alias = "name")]
    model: String,
}

/// What a model is.
pub(crate) async fn show(
    State(app): State<App>,
    Json(asked): Json<Show>,
) -> Result<axum::Json<Value>, ApiError> {
    let engine = app.models.engine(Some(&asked.model)).await?;
    let config = engine.model.config();
    Ok(axum::Json(json!({
        "details": {"format": "gguf"},
        "capabilities": ["completion", "tools", "embedding"],
        "model_info": {
            "general.architecture": config.arch.name,
            "context_length": config.context_length,
            "served_context_length": engine.context,
            "embedding_length": config.dim,
            "block_count": config.layers.len(),
            "vocab_size": config.vocab_size,
        },
    })))
}

/// Which protocol this is; clients want a version of at least 0.1.
pub(crate) async fn version() -> axum::Json<Value> {
    axum::Json(json!({"version": env!("CARGO_PKG_VERSION")}))
}
