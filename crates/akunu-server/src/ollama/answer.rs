//! `/api/chat` and `/api/generate`

use std::time::Instant;

use akunu::Message;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::{Options, time};
use crate::answers::{Answers, Finish, Happening, Piece, Usage, Whole};
use crate::body::Json;
use crate::error::ApiError;
use crate::openai::{self, ToolField};
use crate::question::{Conversation, Ending, Format, Prompt, ask, normal_messages};
use crate::reader::ToolCall;
use crate::router::App;
use crate::stream::{self, Writer};

#[derive(Deserialize)]
pub(crate) struct ChatRequest {
    model: String,
    #[serde(default)]
    messages: Vec<Message>,
    #[serde(default)]
    tools: Vec<ToolField>,
    #[serde(default)]
    options: Options,
    think: Option<bool>,
    format: Option<Value>,
    #[serde(default = "yes")]
    stream: bool,
}

/// Answers a conversation.
pub(crate) async fn chat(
    State(app): State<App>,
    Json(request): Json<ChatRequest>,
) -> Result<Response, ApiError> {
    for (at, message) in request.messages.iter().enumerate() {
        refuse_images(
            &format!("messages[{at}].images"),
            message.extra.get("images"),
        )?;
    }
    let mut conversation = Conversation {
        messages: normal_messages(request.messages)?,
        tools: openai::tools(
            ToolField::functions(request.tools),
            None,
            &app.options.limits,
        )?
        .0,
        format: Format::of_ollama(request.format)?,
        variables: Map::new(),
        ending: Ending::Answer,
    };
    if let Some(think) = request.think {
        conversation
            .variables
            .insert("enable_thinking".into(), think.into());
    }
    let engine = app.models.engine(Some(&request.model)).await?;
    let shape = Shape {
        model: request.model,
        is_chat: true,
    };
    // Ollama's clients load a model by asking nothing.
    if conversation.messages.is_empty() {
        return Ok(axum::Json(shape.loaded()).into_response());
    }
    let answers = ask(
        &engine,
        conversation.prompt(&engine).await?,
        request.options.wish()?,
    )?;
    respond(&app, answers, shape, request.stream).await
}

#[derive(Deserialize)]
pub(crate) struct GenerateRequest {
    model: String,
    #[serde(default)]
    prompt: String,
    system: Option<String>,
    images: Option<Value>,
    /// Take the prompt as it is, without the chat template.
    #[serde(default)]
    raw: bool,
    format: Option<Value>,
    #[serde(default)]
    options: Options,
    #[serde(default = "yes")]
    stream: bool,
}

fn yes() -> bool {
    true
}

/// Answers one question, or continues a text.
pub(crate) async fn generate(
    State(app): State<App>,
    Json(request): Json<GenerateRequest>,
) -> Result<Response, ApiError> {
    refuse_images("images", request.images.as_ref())?;
    let engine = app.models.engine(Some(&request.model)).await?;
    let shape = Shape {
        model: request.model,
        is_chat: false,
    };
    if request.prompt.is_empty() {
        return Ok(axum::Json(shape.loaded()).into_response());
    }
    let prompt = if request.raw {
        Prompt::of_text(&engine, request.prompt).await?
    } else {
        let system = request.system.map(|text| Message::new("system", text));
        let question = Message::new("user", request.prompt);
        let conversation = Conversation {
            messages: system.into_iter().chain([question]).collect(),
            format: Format::of_ollama(request.format)?,
            ..Conversation::default()
        };
        conversation.prompt(&engine).await?
    };
    let answers = ask(&engine, prompt, request.options.wish()?)?;
    respond(&app, answers, shape, request.stream).await
}

/// Refuses what would be left out without a word; some clients always send a list, which may be empty.
fn refuse_images(field: &str, images: Option<&Value>) -> Result<(), ApiError> {
    match images {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Array(list)) if list.is_empty() => Ok(()),
        Some(_) => {
            let message = format!("{field}: this model reads text only");
            Err(ApiError::bad_field(field, message))
        }
    }
}

async fn respond(
    app: &App,
    mut answers: Answers,
    shape: Shape,
    is_stream: bool,
) -> Result<Response, ApiError> {
    let limit = app.options.limits.answering;
    if is_stream {
        let lines = Lines {
            shape,
            finish: Finish::End,
        };
        return Ok(stream::respond(answers, lines, limit));
    }
    let whole = timeout(limit, answers.whole()).await;
    let whole = whole.map_err(|_| stream::too_slow())??;
    let whole = whole.into_iter().next().unwrap_or_default();
    let mut body = shape.part(&whole);
    let finish = whole.finish.unwrap_or(Finish::End);
    shape.end(&mut body, finish, &answers.usage);
    Ok(axum::Json(body).into_response())
}

/// What differs between the two endpoints.
struct Shape {
    model: String,
    is_chat: bool,
}

impl Shape {
    fn part(&self, whole: &Whole) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("model".into(), self.model.as_str().into());
        body.insert("created_at".into(), time(openai::now()).into());
        let mut said = Map::new();
        let name = if self.is_chat { "content" } else { "response" };
        said.insert(name.into(), whole.text.as_str().into());
        if !whole.reasoning.is_empty() {
            said.insert("thinking".into(), whole.reasoning.as_str().into());
        }
        if !whole.calls.is_empty() {
            let calls: Vec<Value> = whole.calls.iter().map(call).collect();
            said.insert("tool_calls".into(), calls.into());
        }
        if self.is_chat {
            said.insert("role".into(), "assistant".into());
            body.insert("message".into(), said.into());
        } else {
            body.extend(said);
        }
        body.insert("done".into(), false.into());
        body
    }

    /// The answer to nothing.
    fn loaded(&self) -> Map<String, Value> {
        let mut body = self.part(&Whole::default());
        body.insert("done".into(), true.into());
        body.insert("done_reason".into(), "load".into());
        body
    }

    fn end(&self, body: &mut Map<String, Value>, finish: Finish, usage: &Usage) {
        let now = Instant::now();
        let first = usage.first.unwrap_or(now);
        let nanoseconds = |from: Instant, to: Instant| {
            let took = to.saturating_duration_since(from).as_nanos();
            Value::from(u64::try_from(took).unwrap_or(u64::MAX))
        };
        let reason = if finish == Finish::Length {
            "length"
        } else {
            "stop"
        };
        for (name, value) in [
            ("done", true.into()),
            ("done_reason", reason.into()),
            ("total_duration", nanoseconds(usage.since, now)),
            ("load_duration", 0.into()),
            ("prompt_eval_count", usage.prompt.into()),
            ("prompt_eval_duration", nanoseconds(usage.since, first)),
            ("eval_count", usage.completion.into()),
            ("eval_duration", nanoseconds(first, now)),
        ] {
            body.insert(name.into(), value);
        }
    }
}

/// Arguments are an object here, not a text.
fn call(call: &ToolCall) -> Value {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    json!({"id": call.id, "function": {"name": call.name, "arguments": arguments}})
}

/// Writes a stream.
struct Lines {
    shape: Shape,
    finish: Finish,
}

impl Lines {
    fn line(&self, body: &Map<String, Value>) -> String {
        // Strings, numbers and lists of them can always be written.
        serde_json::to_string(body).unwrap_or_default() + "\n"
    }
}

impl Writer for Lines {
    fn content_type(&self) -> &'static str {
        "application/x-ndjson"
    }

    fn begin(&mut self, _: &Usage) -> String {
        String::new()
    }

    fn write(&mut self, Happening { what, .. }: Happening) -> String {
        let mut part = Whole::default();
        match what {
            Piece::Text(text) => part.text = text,
            Piece::Reasoning(text) => part.reasoning = text,
            Piece::Call(call) => part.calls.push(call),
            Piece::Ended(finish) => {
                self.finish = finish;
                return String::new();
            }
        }
        self.line(&self.shape.part(&part))
    }

    fn end(&mut self, usage: &Usage) -> String {
        let mut body = self.shape.part(&Whole::default());
        self.shape.end(&mut body, self.finish, usage);
        self.line(&body)
    }

    fn fail(&mut self, error: &ApiError) -> String {
        format!("{}\n", json!({"error": error.message}))
    }

    /// Lines have no comments.
    fn ping(&self) -> &'static str {
        "\n"
    }
}
