//! `/api/embed`

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
    /// Whether a text that is too long is cut. A model that generates text refuses it in any case.
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
