//! `/api/tags`, `/api/show` and `/api/version`

use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::time::time;
use crate::app::App;
use crate::body::Json;
use crate::error::ApiError;
use crate::loaded::Loaded;
use crate::models::Entry;

/// A list of models.
#[derive(Serialize, JsonSchema)]
pub(crate) struct OllamaTags {
    models: Vec<OllamaTag>,
}

#[derive(Serialize, JsonSchema)]
struct OllamaTag {
    name: String,
    model: String,
    modified_at: String,
    /// Bytes of its weights; 0 as long as it is not loaded.
    size: u64,
    digest: &'static str,
    details: OllamaDetails,
}

/// The format of a model's files, as far as it is known: that of one that is not loaded is not.
#[derive(Serialize, JsonSchema)]
pub(super) struct OllamaDetails {
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<FileFormat>,
    #[serde(skip_serializing_if = "Option::is_none")]
    family: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    families: Option<[&'static str; 1]>,
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum FileFormat {
    Gguf,
    Safetensors,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ShowRequest {
    #[serde(alias = "name")]
    model: String,
}

/// What a model is.
#[derive(Serialize, JsonSchema)]
pub(crate) struct OllamaModel {
    details: OllamaDetails,
    capabilities: &'static [Capability],
    model_info: ModelInfo,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Capability {
    Completion,
    Tools,
    Embedding,
    Rerank,
    Transcription,
}

/// What is known of a model of its kind.
#[derive(Default, Serialize, JsonSchema)]
struct ModelInfo {
    #[serde(
        rename = "general.architecture",
        skip_serializing_if = "Option::is_none"
    )]
    architecture: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_length: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    served_context_length: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    embedding_length: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    block_count: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vocab_size: Option<u32>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct OllamaVersion {
    version: &'static str,
}

/// All models, loaded or not.
pub(crate) async fn tags(State(app): State<App>) -> Result<axum::Json<OllamaTags>, ApiError> {
    let modified = time(app.models.created);
    let names = app.models.names();
    let models = names
        .map(|(name, entry)| OllamaTag::of(name, entry, &modified))
        .collect();
    Ok(axum::Json(OllamaTags { models }))
}

impl OllamaTag {
    fn of(name: &str, entry: &Entry, modified: &str) -> OllamaTag {
        let now = entry.now();
        OllamaTag {
            name: name.to_string(),
            model: name.to_string(),
            modified_at: modified.to_string(),
            size: match &now {
                Some(loaded) => loaded.weight_bytes(),
                None => 0,
            },
            digest: "",
            details: OllamaDetails::of(now.as_ref()),
        }
    }
}

impl OllamaDetails {
    pub fn of(model: Option<&Loaded>) -> OllamaDetails {
        let path = match model {
            Some(Loaded::Engine(engine)) => Some(engine.model.path()),
            Some(Loaded::Embedder(embedder)) => Some(embedder.path()),
            Some(Loaded::Reranker(_) | Loaded::Speech(_)) | None => None,
        };
        let format = path.map(|path| {
            let extension = path.extension();
            if extension.is_some_and(|it| it.eq_ignore_ascii_case("gguf")) {
                FileFormat::Gguf
            } else {
                FileFormat::Safetensors
            }
        });
        let family = match model {
            Some(Loaded::Engine(engine)) => Some(engine.model.config().arch),
            _ => None,
        };
        OllamaDetails {
            format,
            family,
            families: family.map(|family| [family]),
        }
    }
}

/// What a model is.
pub(crate) async fn show(
    State(app): State<App>,
    Json(asked): Json<ShowRequest>,
) -> Result<axum::Json<OllamaModel>, ApiError> {
    let model = app.models.load(Some(&asked.model)).await?;
    let (capabilities, model_info) = describe(&model);
    Ok(axum::Json(OllamaModel {
        details: OllamaDetails::of(Some(&model)),
        capabilities,
        model_info,
    }))
}

fn describe(model: &Loaded) -> (&'static [Capability], ModelInfo) {
    use Capability::{Completion, Embedding, Rerank, Tools, Transcription};
    match model {
        Loaded::Engine(engine) => {
            let config = engine.model.config();
            let info = ModelInfo {
                architecture: Some(config.arch),
                context_length: Some(config.context_length as usize),
                served_context_length: Some(engine.context),
                embedding_length: Some(config.dim as usize),
                block_count: Some(config.layers.len()),
                vocab_size: Some(config.vocab_size),
            };
            (&[Completion, Tools, Embedding], info)
        }
        Loaded::Embedder(embedder) => {
            let info = ModelInfo {
                context_length: Some(embedder.max_tokens()),
                embedding_length: Some(embedder.dimensions()),
                ..ModelInfo::default()
            };
            (&[Embedding], info)
        }
        Loaded::Reranker(reranker) => {
            let info = ModelInfo {
                context_length: Some(reranker.max_tokens()),
                ..ModelInfo::default()
            };
            (&[Rerank], info)
        }
        Loaded::Speech(_) => {
            let info = ModelInfo {
                architecture: Some("whisper"),
                ..ModelInfo::default()
            };
            (&[Transcription], info)
        }
    }
}

/// The version of Ollama whose protocol this is: some clients refuse older ones.
const VERSION: &str = "0.12.0";

/// Which protocol this is.
pub(crate) async fn version(State(_): State<App>) -> Result<axum::Json<OllamaVersion>, ApiError> {
    let version = VERSION;
    Ok(axum::Json(OllamaVersion { version }))
}
