//! `/v1/models`

use axum::Json;
use axum::extract::{Path, State};
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::App;
use crate::error::ApiError;
use crate::models::Entry;

/// A list of models.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ModelList {
    object: &'static str,
    data: Vec<Model>,
}

/// A model.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Model {
    id: String,
    object: &'static str,
    created: u64,
    owned_by: &'static str,
    /// What the page shows of a model that is loaded and generates text.
    meta: Option<ModelMeta>,
}

#[derive(Serialize, JsonSchema)]
struct ModelMeta {
    context: u32,
    trained_context: u32,
    vocabulary: u32,
    weight_bytes: u64,
}

/// All models by all their names, loaded or not.
pub(crate) async fn models(State(app): State<App>) -> Result<Json<ModelList>, ApiError> {
    let created = app.models.created;
    let names = app.models.names();
    Ok(Json(ModelList {
        object: "list",
        data: names
            .map(|(name, entry)| Model::of(name, entry, created))
            .collect(),
    }))
}

/// One of them.
pub(crate) async fn model(
    State(app): State<App>,
    Path(name): Path<String>,
) -> Result<Json<Model>, ApiError> {
    let entry = app.models.named(&name);
    let entry = entry.ok_or_else(|| app.models.unknown(&name))?;
    Ok(Json(Model::of(&name, entry, app.models.created)))
}

impl Model {
    fn of(name: &str, entry: &Entry, created: u64) -> Model {
        let meta = entry.loaded().map(|engine| {
            let config = engine.model.config();
            ModelMeta {
                context: engine.context,
                trained_context: config.context_length,
                vocabulary: config.vocab_size,
                weight_bytes: engine.model.weight_bytes(),
            }
        });
        Model {
            id: name.to_string(),
            object: "model",
            created,
            owned_by: "akunu",
            meta,
        }
    }
}
