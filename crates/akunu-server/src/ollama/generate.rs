//! `/api/generate`

use akunu::Message;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::{Lines, Said};
use super::keep::KeepAlive;
use super::options::{OllamaFormat, OllamaOptions, refuse_images, yes};
use crate::answers::Whole;
use crate::app::App;
use crate::body::Json;
use crate::error::ApiError;
use crate::question::{Conversation, Gap, Prompt, ask};
use crate::stream::Reply;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct GenerateRequest {
    model: String,
    /// Nothing loads the model.
    #[serde(default)]
    prompt: String,
    /// What comes after the answer, for models that were trained to fill in the middle.
    suffix: Option<String>,
    system: Option<String>,
    images: Option<Value>,
    /// Take the prompt as it is, without the chat template.
    #[serde(default)]
    raw: bool,
    format: Option<OllamaFormat>,
    keep_alive: Option<KeepAlive>,
    #[serde(default)]
    options: OllamaOptions,
    #[serde(default = "yes")]
    stream: bool,
}

/// Answers one question, or continues a text.
pub(crate) async fn generate(
    State(app): State<App>,
    Json(request): Json<GenerateRequest>,
) -> Result<Reply<Lines<Generated>>, ApiError> {
    refuse_images("images", request.images.as_ref())?;
    let engine = app.models.engine(Some(&request.model)).await?;
    let model = request.model;
    let lines = Lines::new(model.clone());
    if request.prompt.is_empty() {
        let is_unloaded = KeepAlive::apply(request.keep_alive.as_ref(), &app, &model)?;
        return Ok(Reply::Whole(axum::Json(lines.loaded(is_unloaded))));
    }
    let format = OllamaFormat::format(request.format)?;
    let mut wish = request.options.wish(&app.options.limits)?;
    let suffix = request.suffix.filter(|suffix| !suffix.is_empty());
    let prompt = if let Some(after) = suffix {
        let gap = Gap {
            before: request.prompt,
            after,
            ..Gap::default()
        };
        let (prompt, ends) = gap.prompt("suffix", engine.model.tokenizer())?;
        wish.stop_ids.extend(ends);
        format.of_answer(prompt, &engine).await?
    } else if request.raw {
        let prompt = Prompt::of_text(&engine, request.prompt).await?;
        format.of_answer(prompt, &engine).await?
    } else {
        let system = request.system.map(|text| Message::new("system", text));
        let question = Message::new("user", request.prompt);
        let conversation = Conversation {
            messages: system.into_iter().chain([question]).collect(),
            format,
            ..Conversation::default()
        };
        conversation.prompt(&engine).await?
    };
    let answers = ask(&engine, prompt, wish)?;
    KeepAlive::apply(request.keep_alive.as_ref(), &app, &model)?;
    let limit = app.options.limits.answering;
    Reply::new(answers, lines, request.stream, limit).await
}

/// What is said to a question.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Generate")]
pub(crate) struct Generated {
    response: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    thinking: String,
}

impl Said for Generated {}

impl From<Whole> for Generated {
    fn from(whole: Whole) -> Generated {
        Generated {
            response: whole.text,
            thinking: whole.reasoning,
        }
    }
}
