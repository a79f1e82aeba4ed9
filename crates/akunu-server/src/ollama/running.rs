//! `/api/ps`: the models that are loaded.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use super::list::OllamaDetails;
use super::time::time;
use crate::app::App;
use crate::clock::now;
use crate::error::ApiError;
use crate::loaded::Loaded;
use crate::models::Entry;

/// The models that are loaded.
#[derive(Serialize, JsonSchema)]
pub(crate) struct OllamaRunning {
    models: Vec<OllamaLoaded>,
}

#[derive(Serialize, JsonSchema)]
struct OllamaLoaded {
    name: String,
    model: String,
    /// Bytes of its weights.
    size: u64,
    /// The same: where they lie is the device's business.
    size_vram: u64,
    digest: &'static str,
    details: OllamaDetails,
    expires_at: String,
    context_length: usize,
}

/// Seconds of what is called forever: a hundred years.
const FOREVER: u64 = 100 * 365 * 24 * 3600;

/// The models that are loaded now.
pub(crate) async fn running(State(app): State<App>) -> Result<axum::Json<OllamaRunning>, ApiError> {
    let keep = app.options.keep.map_or(FOREVER, |keep| keep.as_secs());
    let entries = app.models.all().iter();
    let models = entries.filter_map(|entry| Some(OllamaLoaded::of(entry, &entry.now()?, keep)));
    let models = models.collect();
    Ok(axum::Json(OllamaRunning { models }))
}

impl OllamaLoaded {
    fn of(entry: &Entry, loaded: &Loaded, keep: u64) -> OllamaLoaded {
        let size = loaded.weight_bytes();
        let left = match entry.is_pinned() {
            true => FOREVER,
            false => keep.saturating_sub(entry.unused_for().as_secs()),
        };
        OllamaLoaded {
            name: entry.name.clone(),
            model: entry.name.clone(),
            size,
            size_vram: size,
            digest: "",
            details: OllamaDetails::of(Some(loaded)),
            expires_at: time(now() + left),
            context_length: loaded.max_tokens(),
        }
    }
}
