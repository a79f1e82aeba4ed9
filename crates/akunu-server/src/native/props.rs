//! `/props` and `/slots`: what llama.cpp's server says of itself.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::App;
use crate::error::ApiError;

/// What this server is.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Props {
    default_generation_settings: GenerationSettings,
    total_slots: u32,
    model_alias: String,
    /// Its name, without a path.
    model_path: String,
    bos_token: String,
    eos_token: String,
    modalities: Modalities,
    build_info: &'static str,
}

#[derive(Serialize, JsonSchema)]
struct GenerationSettings {
    n_ctx: u32,
    params: GenerationParams,
}

/// How tokens are drawn where a request does not say it.
#[derive(Serialize, JsonSchema)]
struct GenerationParams {
    temperature: f32,
    top_k: u32,
    top_p: f32,
    min_p: f32,
    repeat_penalty: f32,
    repeat_last_n: u32,
    frequency_penalty: f32,
    presence_penalty: f32,
    /// -1: as many as the context holds.
    n_predict: i32,
}

#[derive(Serialize, JsonSchema)]
struct Modalities {
    vision: bool,
    audio: bool,
}

/// What the default model, or the first, is asked for as if nobody said anything.
pub(crate) async fn props(State(app): State<App>) -> Result<Json<Props>, ApiError> {
    let name = app.models.find(None)?.name.clone();
    let engine = app.models.engine(None).await?;
    let tokenizer = engine.model.tokenizer();
    let special = tokenizer.special_ids();
    let text = |id| tokenizer.special_text(id).unwrap_or_default();
    let sampling = akunu::careful_sampling(&engine.sampling);
    Ok(Json(Props {
        default_generation_settings: GenerationSettings {
            n_ctx: engine.context,
            params: GenerationParams {
                temperature: sampling.temperature,
                top_k: sampling.top_k,
                top_p: sampling.top_p,
                min_p: sampling.min_p,
                repeat_penalty: sampling.repetition_penalty,
                repeat_last_n: sampling.penalty_window,
                frequency_penalty: sampling.frequency_penalty,
                presence_penalty: sampling.presence_penalty,
                n_predict: -1,
            },
        },
        total_slots: app.options.sequences,
        model_alias: name.clone(),
        model_path: name,
        bos_token: text(special.bos),
        eos_token: text(special.eos),
        modalities: Modalities {
            vision: false,
            audio: false,
        },
        build_info: concat!("akunu-", env!("CARGO_PKG_VERSION")),
    }))
}

/// A place of the batch. Which answer has which is not told: any that is free takes the next one.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Slot {
    id: u32,
    n_ctx: u32,
    is_processing: bool,
    speculative: bool,
}

/// The places of the default model, or of the first.
pub(crate) async fn slots(State(app): State<App>) -> Result<Json<Vec<Slot>>, ApiError> {
    let stats = app.models.find(None)?.stats.clone();
    let engine = app.models.engine(None).await?;
    let n_running = u32::try_from(stats.running.get()).unwrap_or(0);
    let slot = |id| Slot {
        id,
        n_ctx: engine.context,
        is_processing: id < n_running,
        speculative: engine.speculation.draft.is_some(),
    };
    Ok(Json((0..app.options.sequences).map(slot).collect()))
}
