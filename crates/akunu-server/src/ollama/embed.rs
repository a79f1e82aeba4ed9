//! `/api/embed`

use akunu::EmbedOptions;
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
    /// Whether a text that is too long is cut. A model that generates text refuses it in any case.
    #[serde(default = "yes")]
    truncate: bool,
    dimensions: Option<usize>,
}

fn yes() -> bool {
    true
}

/// Texts as vectors.
pub(crate) async fn embed(
    State(app): State<App>,
    Json(request): Json<Request>,
) -> Result<axum::Json<Value>, ApiError> {
    let model = app.models.load(Some(&request.model)).await?;
    let options = EmbedOptions {
        dimensions: request.dimensions,
        strict: !request.truncate,
        ..EmbedOptions::default()
    };
    let made = embedding::of(&model, request.input, options, &app.options.limits).await?;
    Ok(axum::Json(json!({
        "model": request.model,
        "embeddings": made.vectors,
        "prompt_eval_count": made.n_tokens,
    })))
}
