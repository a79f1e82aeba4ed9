//! Anthropic's protocol: `/v1/messages` and `/v1/messages/count_tokens`.
//!
//! A stream has `message_start`, then for each block of content `content_block_start`, deltas and `content_block_stop`,
//! then `message_delta` with the reason of the end, and `message_stop`.

mod messages;
mod stream;

use akunu::Message;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use self::stream::Blocks;
use crate::answers::{Finish, Usage, Whole};
use crate::body::Json;
use crate::error::ApiError;
use crate::openai::new_id;
use crate::options::Limits;
use crate::question::{Conversation, Draw, Ending, Format, Tool, Wish, ask, tool_name};
use crate::reader::ToolCall;
use crate::router::App;
use crate::stream::{respond, too_slow};

#[derive(Deserialize)]
pub(crate) struct Request {
    model: Option<String>,
    messages: Vec<messages::Field>,
    system: Option<Value>,
    #[serde(default)]
    tools: Vec<ToolField>,
    tool_choice: Option<Value>,
    max_tokens: Option<usize>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    top_k: Option<i64>,
    #[serde(default)]
    stop_sequences: Vec<String>,
    #[serde(default)]
    stream: bool,
}

#[derive(Deserialize)]
struct ToolField {
    #[serde(deserialize_with = "tool_name")]
    name: String,
    description: Option<String>,
    #[serde(default)]
    input_schema: Value,
    strict: Option<bool>,
}

/// Answers a conversation.
pub(crate) async fn messages(
    State(app): State<App>,
    Json(request): Json<Request>,
) -> Result<Response, ApiError> {
    let limits = app.options.limits;
    let Some(max_tokens) = request.max_tokens.filter(|n| *n > 0) else {
        return Err(ApiError::bad_field(
            "max_tokens",
            "max_tokens: a number of 1 or more is needed",
        ));
    };
    if request.stop_sequences.len() > limits.texts {
        let message = format!("stop_sequences: at most {}", limits.texts);
        return Err(ApiError::bad_field("stop_sequences", message));
    }
    let wish = Wish {
        max_tokens: Some(max_tokens),
        draw: Draw {
            temperature: request.temperature,
            top_p: request.top_p,
            top_k: request.top_k,
            ..Draw::default()
        },
        stop: request.stop_sequences.clone(),
        ..Wish::default()
    };
    let name = app.models.find(request.model.as_deref())?.name.clone();
    let engine = app.models.engine(request.model.as_deref()).await?;
    let is_stream = request.stream;
    let head = Head {
        id: new_id("msg_"),
        model: name,
        // The engine does not tell which of several texts ended the answer.
        stop: match &request.stop_sequences[..] {
            [one] => Some(one.clone()),
            _ => None,
        },
    };
    let prompt = request.conversation(&limits)?.prompt(&engine).await?;
    let mut answers = ask(&engine, prompt, wish)?;
    if is_stream {
        return Ok(respond(answers, Blocks::new(head), limits.answering));
    }
    let whole = timeout(limits.answering, answers.whole()).await;
    let whole = whole.map_err(|_| too_slow())??;
    let whole = whole.into_iter().next().unwrap_or_default();
    let body = head.message(content(&whole), whole.finish, &answers.usage);
    Ok(axum::Json(body).into_response())
}

/// How many tokens a conversation has.
pub(crate) async fn count_tokens(
    State(app): State<App>,
    Json(request): Json<Request>,
) -> Result<axum::Json<Value>, ApiError> {
    let engine = app.models.engine(request.model.as_deref()).await?;
    let conversation = request.conversation(&app.options.limits)?;
    let prompt = conversation.prompt(&engine).await?;
    Ok(axum::Json(json!({"input_tokens": prompt.ids.len()})))
}

impl Request {
    fn conversation(self, limits: &Limits) -> Result<Conversation, ApiError> {
        if self.tools.len() > limits.tools {
            let message = format!(
                "tools: there are {}; at most {}",
                self.tools.len(),
                limits.tools
            );
            return Err(ApiError::bad_field("tools", message));
        }
        let mut all = Vec::new();
        if let Some(system) = &self.system {
            let text = messages::text(system, "system")?;
            all.push(Message::new("system", messages::without_billing(&text)));
        }
        for (at, message) in self.messages.into_iter().enumerate() {
            all.extend(message.normal(at)?);
        }
        let choice = self.tool_choice.unwrap_or_default();
        let tools = self.tools.into_iter().map(|tool| Tool {
            name: tool.name,
            description: tool.description,
            parameters: tool.input_schema,
            strict: tool.strict.unwrap_or_default(),
        });
        let is_wanted = |tool: &Tool| match choice["type"].as_str() {
            Some("none") => false,
            Some("tool") => choice["name"].as_str() == Some(&tool.name),
            _ => true,
        };
        let tools: Vec<Tool> = tools.filter(is_wanted).collect();
        let must_call = matches!(choice["type"].as_str(), Some("any" | "tool"));
        if must_call && tools.is_empty() {
            let message = "tool_choice: there is no such tool";
            return Err(ApiError::bad_field("tool_choice", message));
        }
        // As Anthropic has it, an answer goes on with what the assistant has begun to say.
        let is_begun = all.len() > 1
            && all.last().is_some_and(|last| {
                last.role == "assistant" && !last.extra.contains_key("tool_calls")
            });
        Ok(Conversation {
            messages: all,
            tools,
            ending: if is_begun {
                Ending::LastMessage
            } else {
                Ending::Answer
            },
            format: if must_call {
                Format::Call
            } else {
                Format::Free
            },
            ..Conversation::default()
        })
    }
}

/// What all events of an answer have in common.
struct Head {
    id: String,
    model: String,
    stop: Option<String>,
}

impl Head {
    fn message(&self, content: Vec<Value>, finish: Option<Finish>, usage: &Usage) -> Value {
        json!({
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": finish.map(reason),
            "stop_sequence": self.stopped_by(finish),
            "usage": used(usage),
        })
    }

    fn stopped_by(&self, finish: Option<Finish>) -> Option<&str> {
        let is_stop = finish == Some(Finish::StopText);
        self.stop.as_deref().filter(|_| is_stop)
    }
}

fn reason(finish: Finish) -> &'static str {
    match finish {
        Finish::End => "end_turn",
        Finish::StopText => "stop_sequence",
        Finish::Length => "max_tokens",
        Finish::Calls => "tool_use",
    }
}

/// Tokens that were in the cache are counted apart.
fn used(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.prompt - usage.cached,
        "cache_read_input_tokens": usage.cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": usage.completion,
    })
}

fn content(whole: &Whole) -> Vec<Value> {
    let mut blocks = Vec::new();
    if !whole.reasoning.is_empty() {
        blocks.push(json!({"type": "thinking", "thinking": whole.reasoning, "signature": ""}));
    }
    if !whole.text.is_empty() {
        blocks.push(json!({"type": "text", "text": whole.text}));
    }
    blocks.extend(whole.calls.iter().map(tool_use));
    blocks
}

fn tool_use(call: &ToolCall) -> Value {
    let input: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input})
}
