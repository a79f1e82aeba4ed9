//! `/v1/models`

use axum::extract::{Path, State};
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::models::Entry;
use crate::router::App;

/// All models, loaded or not.
pub(crate) async fn models(State(app): State<App>) -> axum::Json<Value> {
    let created = app.models.created;
    let entries = app.models.all().iter();
    let data: Vec<Value> = entries.map(|entry| describe(entry, created)).collect();
    axum::Json(json!({"object": "list", "data": data}))
}

/// One of them.
pub(crate) async fn model(
    State(app): State<App>,
    Path(name): Path<String>,
) -> Result<axum::Json<Value>, ApiError> {
    let entry = app.models.find(Some(&name))?;
    Ok(axum::Json(describe(entry, app.models.created)))
}

/// What the page shows of a loaded model goes into `meta`.
fn describe(entry: &Entry, created: u64) -> Value {
    let meta = entry.loaded().map(|engine| {
        let config = engine.model.config();
        json!({
            "context": engine.context,
            "trained_context": config.context_length,
            "vocabulary": config.vocab_size,
            "weight_bytes": engine.model.weight_bytes(),
        })
    });
    json!({
        "id": entry.name,
        "object": "model",
        "created": created,
        "owned_by": "akunu",
        "meta": meta,
    })
}
