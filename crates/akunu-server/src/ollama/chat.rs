//! `/api/chat`

use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::answer::{Lines, Said};
use super::keep::KeepAlive;
use super::options::{OllamaFormat, OllamaOptions, refuse_images, yes};
use crate::answers::Whole;
use crate::app::App;
use crate::body::Json;
use crate::calls;
use crate::error::ApiError;
use crate::openai::{Message, ToolField, normal, tools};
use crate::question::{Conversation, Ending, ask};
use crate::stream::Reply;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct OllamaChatRequest {
    model: String,
    /// As in OpenAI's protocol; nothing loads the model.
    #[serde(default)]
    messages: Vec<Message>,
    #[serde(default)]
    tools: Vec<ToolField>,
    #[serde(default)]
    options: OllamaOptions,
    think: Option<bool>,
    format: Option<OllamaFormat>,
    keep_alive: Option<KeepAlive>,
    #[serde(default = "yes")]
    stream: bool,
}

/// Answers a conversation.
pub(crate) async fn chat(
    State(app): State<App>,
    Json(request): Json<OllamaChatRequest>,
) -> Result<Reply<Lines<ChatSaid>>, ApiError> {
    for (at, message) in request.messages.iter().enumerate() {
        let field = format!("messages[{at}].images");
        refuse_images(&field, message.extra.get("images"))?;
    }
    let limits = app.options.limits;
    let functions = ToolField::functions(request.tools);
    let think = request
        .think
        .map(|think| ("enable_thinking".into(), think.into()));
    let conversation = Conversation {
        messages: normal(request.messages)?,
        tools: tools(functions, None, &limits)?.0,
        format: OllamaFormat::format(request.format)?,
        variables: think.into_iter().collect(),
        ending: Ending::Answer,
        one_call: false,
    };
    let engine = app.models.engine(Some(&request.model)).await?;
    let model = request.model;
    let lines = Lines::new(model.clone());
    if conversation.messages.is_empty() {
        let is_unloaded = KeepAlive::apply(request.keep_alive.as_ref(), &app, &model)?;
        return Ok(Reply::Whole(axum::Json(lines.loaded(is_unloaded))));
    }
    let prompt = conversation.prompt(&engine).await?;
    let answers = ask(&engine, prompt, request.options.wish(&limits)?)?;
    KeepAlive::apply(request.keep_alive.as_ref(), &app, &model)?;
    Reply::new(answers, lines, request.stream, limits.answering).await
}

/// What is said in a conversation.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Chat")]
pub(crate) struct ChatSaid {
    message: OllamaMessage,
}

#[derive(Serialize, JsonSchema)]
struct OllamaMessage {
    role: &'static str,
    content: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    thinking: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<OllamaToolCall>,
}

#[derive(Serialize, JsonSchema)]
struct OllamaToolCall {
    id: String,
    function: OllamaFunction,
}

#[derive(Serialize, JsonSchema)]
struct OllamaFunction {
    name: String,
    /// An object here, as the tool's schema has it.
    arguments: Map<String, Value>,
}

impl Said for ChatSaid {}

impl From<Whole> for ChatSaid {
    fn from(whole: Whole) -> ChatSaid {
        ChatSaid {
            message: OllamaMessage {
                role: "assistant",
                content: whole.text,
                thinking: whole.reasoning,
                tool_calls: whole.calls.into_iter().map(OllamaToolCall::from).collect(),
            },
        }
    }
}

impl From<calls::ToolCall> for OllamaToolCall {
    fn from(call: calls::ToolCall) -> OllamaToolCall {
        OllamaToolCall {
            function: OllamaFunction {
                arguments: call.object(),
                name: call.name,
            },
            id: call.id,
        }
    }
}
