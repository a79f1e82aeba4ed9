//! `/v1/responses`: one answer, as a list of items. Nothing is kept here, so that `previous_response_id` cannot be had.

mod input;
mod stream;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use self::stream::Items;
use super::fields::Function;
use super::{new_id, now, tools};
use crate::answers::{Finish, Usage, Whole};
use crate::body::Both;
use crate::error::ApiError;
use crate::options::Limits;
use crate::question::{Conversation, Draw, Format, Wish, ask};
use crate::reader::ToolCall;
use crate::router::App;
use crate::stream::{respond, too_slow};

#[derive(Deserialize)]
pub(crate) struct Request {
    model: Option<String>,
    input: Value,
    instructions: Option<String>,
    max_output_tokens: Option<usize>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    /// Here the function is not in an object of its own.
    #[serde(default)]
    tools: Vec<Function>,
    tool_choice: Option<Value>,
    text: Option<Value>,
    previous_response_id: Option<String>,
    #[serde(default)]
    stream: bool,
}

/// What is told in the answer as it was asked.
#[derive(Deserialize)]
pub(crate) struct Told {
    #[serde(default)]
    tools: Vec<Value>,
    tool_choice: Option<Value>,
}

/// Answers.
pub(crate) async fn responses(
    State(app): State<App>,
    Both(request, told): Both<Request, Told>,
) -> Result<Response, ApiError> {
    let limits = app.options.limits;
    let wish = Wish {
        max_tokens: request.max_output_tokens,
        draw: Draw {
            temperature: request.temperature,
            top_p: request.top_p,
            ..Draw::default()
        },
        ..Wish::default()
    };
    let name = app.models.find(request.model.as_deref())?.name.clone();
    let engine = app.models.engine(request.model.as_deref()).await?;
    let is_stream = request.stream;
    let conversation = request.conversation(&limits)?;
    let mut answers = ask(&engine, conversation.prompt(&engine).await?, wish)?;
    let head = Head {
        id: new_id("resp_"),
        created: now(),
        model: name,
        told,
    };
    if is_stream {
        return Ok(respond(answers, Items::new(head), limits.answering));
    }
    let whole = timeout(limits.answering, answers.whole()).await;
    let whole = whole.map_err(|_| too_slow())??;
    let whole = whole.into_iter().next().unwrap_or_default();
    let body = head.response(items(&whole), whole.finish, Some(&answers.usage));
    Ok(axum::Json(body).into_response())
}

impl Request {
    fn conversation(self, limits: &Limits) -> Result<Conversation, ApiError> {
        if self.previous_response_id.is_some() {
            let message = "previous_response_id: this server keeps no answers; send the whole conversation as input";
            return Err(ApiError::bad_field("previous_response_id", message));
        }
        let (tools, must_call) = tools(self.tools, self.tool_choice.as_ref(), limits)?;
        let format = self.text.and_then(|text| text.get("format").cloned());
        Ok(Conversation {
            messages: input::messages(self.instructions, &self.input)?,
            tools,
            format: if must_call {
                Format::Call
            } else {
                Format::of_openai("text.format", format)?
            },
            ..Conversation::default()
        })
    }
}

/// What all events of an answer have in common.
struct Head {
    id: String,
    created: u64,
    model: String,
    told: Told,
}

impl Head {
    /// The response as it is now; without an end it is in progress.
    fn response(&self, output: Vec<Value>, finish: Option<Finish>, usage: Option<&Usage>) -> Value {
        let (status, why) = match finish {
            None => ("in_progress", Value::Null),
            Some(Finish::Length) => ("incomplete", json!({"reason": "max_output_tokens"})),
            Some(_) => ("completed", Value::Null),
        };
        json!({
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "incomplete_details": why,
            "error": null,
            "model": self.model,
            "output": output,
            "parallel_tool_calls": true,
            "tool_choice": self.told.tool_choice.as_ref().unwrap_or(&"auto".into()),
            "tools": self.told.tools,
            "usage": usage.map(used),
        })
    }
}

fn used(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.completion,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt + usage.completion,
    })
}

fn items(whole: &Whole) -> Vec<Value> {
    let mut items = Vec::new();
    if !whole.reasoning.is_empty() {
        items.push(thought(&new_id("rs_"), &whole.reasoning));
    }
    if !whole.text.is_empty() || whole.calls.is_empty() {
        items.push(message(&new_id("msg_"), &whole.text, "completed"));
    }
    items.extend(whole.calls.iter().map(function_call));
    items
}

fn thought(id: &str, text: &str) -> Value {
    let content = json!([{"type": "reasoning_text", "text": text}]);
    json!({"type": "reasoning", "id": id, "summary": [], "content": content})
}

fn message(id: &str, text: &str, status: &str) -> Value {
    json!({
        "type": "message",
        "id": id,
        "status": status,
        "role": "assistant",
        "content": [output_text(text)],
    })
}

fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": []})
}

fn function_call(call: &ToolCall) -> Value {
    json!({
        "type": "function_call",
        "id": format!("fc_{}", call.id),
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
        "status": "completed",
    })
}
