//! `/apply-template`

use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::app::App;
use crate::body::Json;
use crate::error::ApiError;
use crate::openai::{Message, ToolField, normal, tools};
use crate::question::{Conversation, Ending};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct TemplateRequest {
    model: Option<String>,
    /// As in OpenAI's protocol.
    #[schemars(length(min = 1))]
    messages: Vec<Message>,
    tools: Option<Vec<ToolField>>,
    chat_template_kwargs: Option<Map<String, Value>>,
    add_generation_prompt: Option<bool>,
}

/// A prompt, and how many tokens it has.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AppliedTemplate {
    prompt: String,
    tokens: usize,
}

/// A conversation as the model reads it.
pub(crate) async fn apply_template(
    State(app): State<App>,
    Json(request): Json<TemplateRequest>,
) -> Result<axum::Json<AppliedTemplate>, ApiError> {
    let engine = app.models.engine(request.model.as_deref()).await?;
    let functions = ToolField::functions(request.tools.unwrap_or_default());
    let (tools, _) = tools(functions, None, &app.options.limits)?;
    let conversation = Conversation {
        messages: normal(request.messages)?,
        tools,
        variables: request.chat_template_kwargs.unwrap_or_default(),
        ending: if request.add_generation_prompt == Some(false) {
            Ending::Nothing
        } else {
            Ending::Answer
        },
        ..Conversation::default()
    };
    let prompt = conversation.prompt(&engine).await?;
    Ok(axum::Json(AppliedTemplate {
        prompt: engine.text_of(&prompt.ids),
        tokens: prompt.ids.len(),
    }))
}
