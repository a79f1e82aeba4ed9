//! `/api/embed` and the older `/api/embeddings`

use akunu::EmbedOptions;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::options::yes;
use crate::app::App;
use crate::body::Json;
use crate::embedding::{self, Texts};
use crate::error::ApiError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct EmbedRequest {
    model: String,
    input: Texts,
    /// Whether a text that is too long is cut.
    #[serde(default = "yes")]
    truncate: bool,
    dimensions: Option<usize>,
}

/// Vectors, in the order of the texts.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Embeddings {
    model: String,
    embeddings: Vec<Vec<f32>>,
    prompt_eval_count: usize,
}

/// Texts as vectors.
pub(crate) async fn embed(
    State(app): State<App>,
    Json(request): Json<EmbedRequest>,
) -> Result<axum::Json<Embeddings>, ApiError> {
    let options = EmbedOptions {
        dimensions: request.dimensions,
        strict: !request.truncate,
        ..EmbedOptions::default()
    };
    let made = embedding::of(&app, Some(&request.model), request.input, options).await?;
    Ok(axum::Json(Embeddings {
        model: request.model,
        embeddings: made.vectors,
        prompt_eval_count: made.n_tokens,
    }))
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct OneEmbedRequest {
    model: String,
    prompt: String,
}

/// The vector of a text.
#[derive(Serialize, JsonSchema)]
pub(crate) struct OneEmbedding {
    embedding: Vec<f32>,
}

/// One text as a vector. A text that is too long is cut.
pub(crate) async fn embeddings(
    State(app): State<App>,
    Json(request): Json<OneEmbedRequest>,
) -> Result<axum::Json<OneEmbedding>, ApiError> {
    let text = Texts::One(request.prompt);
    let made = embedding::of(&app, Some(&request.model), text, EmbedOptions::default()).await?;
    let embedding = made.vectors.into_iter().next().unwrap_or_default();
    Ok(axum::Json(OneEmbedding { embedding }))
}
