//! `/api/embed`

use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::body::Json;
use crate::embedding::{self, Texts};
use crate::error::ApiError;
use crate::router::App;

#[derive(Deserialize)]
pub(crate) struct Request {
    model: String,
    input: Texts,
}

/// Texts as vectors.
pub(crate) async fn embed(
    State(app): State<App>,
    Json(request): Json<Request>,
) -> Result<axum::Json<Value>, ApiError> {
    let engine = app.models.engine(Some(&request.model)).await?;
    let made = embedding::of(&engine, request.input, &app.options.limits).await?;
    Ok(axum::Json(json!({
        "model": request.model,
        "embeddings": made.vectors,
        "prompt_eval_count": made.n_tokens,
    })))
}
