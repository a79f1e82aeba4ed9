//! `/v1/chat/completions`
//!
//! A stream has, in this order: a delta with the role; deltas with reasoning, text and calls; an empty delta with
//! `finish_reason`; for `include_usage` a chunk without choices; `[DONE]`.

use akunu::Message;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::fields::{Making, StreamOptions};
use super::{ToolField, finish_name, logprobs, new_id, now, tools, usage};
use crate::answers::{Happening, Piece, Scored, Usage, Whole};
use crate::body::Both;
use crate::error::ApiError;
use crate::question::{Conversation, Ending, Format, ask, normal_messages};
use crate::reader::ToolCall;
use crate::router::App;
use crate::stream::{self, Writer, event};

#[derive(Deserialize)]
pub(crate) struct Request {
    model: Option<String>,
    messages: Vec<Message>,
    tools: Option<Vec<ToolField>>,
    tool_choice: Option<Value>,
    response_format: Option<Value>,
    /// A schema that the answer must be valid by, as llama.cpp has it.
    json_schema: Option<Value>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    /// What the template gets to know besides, as vLLM and llama.cpp call it.
    chat_template_kwargs: Option<Map<String, Value>>,
    /// Go on with the assistant's last message, as vLLM has it.
    continue_final_message: Option<bool>,
    add_generation_prompt: Option<bool>,
}

impl Request {
    fn ending(&self) -> Result<Ending, ApiError> {
        match (self.continue_final_message, self.add_generation_prompt) {
            (Some(true), Some(true)) => Err(ApiError::bad_field(
                "continue_final_message",
                "continue_final_message and add_generation_prompt exclude each other",
            )),
            (Some(true), _) => Ok(Ending::LastMessage),
            (_, Some(false)) => Ok(Ending::Nothing),
            _ => Ok(Ending::Answer),
        }
    }
}

/// Answers a conversation.
pub(crate) async fn chat(
    State(app): State<App>,
    Both(request, making): Both<Request, Making>,
) -> Result<Response, ApiError> {
    let limits = app.options.limits;
    let wish = making.wish(&limits)?;
    let ending = request.ending()?;
    let tools_given = ToolField::functions(request.tools.unwrap_or_default());
    let (tools, must_call) = tools(tools_given, request.tool_choice.as_ref(), &limits)?;
    let format = match request.json_schema {
        Some(schema) => Format::Schema("json_schema", schema),
        None => Format::of_openai("response_format", request.response_format)?,
    };
    let conversation = Conversation {
        messages: normal_messages(request.messages)?,
        tools,
        format: if must_call { Format::Call } else { format },
        variables: request.chat_template_kwargs.unwrap_or_default(),
        ending,
    };
    let name = app.models.find(request.model.as_deref())?.name.clone();
    let engine = app.models.engine(request.model.as_deref()).await?;
    let n = wish.n;
    let mut answers = ask(&engine, conversation.prompt(&engine).await?, wish)?;
    let head = Head::new("chatcmpl-", name);
    if request.stream.unwrap_or_default() {
        let with_usage = request.stream_options.unwrap_or_default().include_usage;
        let n_calls = vec![0; n];
        let writer = Chunks {
            head,
            n_calls,
            with_usage,
        };
        return Ok(stream::respond(answers, writer, limits.answering));
    }
    let whole = timeout(limits.answering, answers.whole()).await;
    let whole = whole.map_err(|_| stream::too_slow())??;
    let choices: Vec<Value> = whole.iter().enumerate().map(choice).collect();
    let mut body = head.object("chat.completion");
    body.insert("choices".into(), choices.into());
    body.insert("usage".into(), usage(&answers.usage));
    Ok(axum::Json(body).into_response())
}

/// What made an answer: with another version the same seed may give another one.
const FINGERPRINT: &str = concat!("akunu-", env!("CARGO_PKG_VERSION"));

/// What all objects of an answer have in common.
pub(super) struct Head {
    id: String,
    created: u64,
    model: String,
}

impl Head {
    pub fn new(prefix: &str, model: String) -> Head {
        Head {
            id: new_id(prefix),
            created: now(),
            model,
        }
    }

    pub fn object(&self, kind: &str) -> Map<String, Value> {
        let mut object = Map::new();
        object.insert("id".into(), self.id.as_str().into());
        object.insert("object".into(), kind.into());
        object.insert("created".into(), self.created.into());
        object.insert("model".into(), self.model.as_str().into());
        object.insert("system_fingerprint".into(), FINGERPRINT.into());
        object
    }
}

fn choice((index, whole): (usize, &Whole)) -> Value {
    let mut message = Map::new();
    message.insert("role".into(), "assistant".into());
    let is_silent = whole.text.is_empty() && !whole.calls.is_empty();
    let content = if is_silent {
        Value::Null
    } else {
        whole.text.as_str().into()
    };
    message.insert("content".into(), content);
    if !whole.reasoning.is_empty() {
        message.insert("reasoning_content".into(), whole.reasoning.as_str().into());
    }
    if !whole.calls.is_empty() {
        let calls: Vec<Value> = whole.calls.iter().map(call).collect();
        message.insert("tool_calls".into(), calls.into());
    }
    json!({
        "index": index,
        "message": message,
        "logprobs": logprobs::of_chat(&whole.scored),
        "finish_reason": whole.finish.map(finish_name),
    })
}

fn call(call: &ToolCall) -> Value {
    json!({
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    })
}

/// Writes a stream.
struct Chunks {
    head: Head,
    /// Calls that each answer has made.
    n_calls: Vec<usize>,
    with_usage: bool,
}

impl Chunks {
    fn chunk(&self, index: usize, delta: Value, finish: Option<&str>, scored: &[Scored]) -> String {
        let choice = json!({
            "index": index,
            "delta": delta,
            "logprobs": logprobs::of_chat(scored),
            "finish_reason": finish,
        });
        self.with_choices(vec![choice], Value::Null)
    }

    fn with_choices(&self, choices: Vec<Value>, usage: Value) -> String {
        let mut chunk = self.head.object("chat.completion.chunk");
        chunk.insert("choices".into(), choices.into());
        if self.with_usage {
            chunk.insert("usage".into(), usage);
        }
        event(&chunk)
    }
}

impl Writer for Chunks {
    fn begin(&mut self, _: &Usage) -> String {
        let role = |index| {
            let delta = json!({"role": "assistant", "content": ""});
            self.chunk(index, delta, None, &[])
        };
        (0..self.n_calls.len()).map(role).collect()
    }

    fn write(&mut self, happening: Happening) -> String {
        let Happening {
            choice,
            what,
            scored,
        } = happening;
        let (delta, finish) = match what {
            Piece::Text(text) => (json!({"content": text}), None),
            Piece::Reasoning(text) => (json!({"reasoning_content": text}), None),
            Piece::Call(made) => {
                let mut call = call(&made);
                call["index"] = self.n_calls[choice].into();
                self.n_calls[choice] += 1;
                (json!({"tool_calls": [call]}), None)
            }
            Piece::Ended(finish) => (json!({}), Some(finish_name(finish))),
        };
        self.chunk(choice, delta, finish, &scored)
    }

    fn end(&mut self, used: &Usage) -> String {
        let mut text = String::new();
        if self.with_usage {
            text.push_str(&self.with_choices(Vec::new(), usage(used)));
        }
        text + "data: [DONE]\n\n"
    }

    fn fail(&mut self, error: &ApiError) -> String {
        event(&error.openai())
    }
}
