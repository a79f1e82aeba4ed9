//! `/v1/completions`: text that goes on, without a chat template.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::chat::Head;
use super::fields::{Making, StreamOptions};
use super::{finish_name, logprobs, usage};
use crate::answers::{Happening, Piece, Scored, Usage};
use crate::body::Both;
use crate::engine::Engine;
use crate::error::ApiError;
use crate::question::{Prompt, ask};
use crate::router::App;
use crate::stream::{self, Writer, event};

#[derive(Deserialize)]
pub(crate) struct Request {
    model: Option<String>,
    prompt: Value,
    echo: Option<bool>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
}

/// OpenAI's own default.
const MAX_TOKENS: usize = 16;

/// Continues a text.
pub(crate) async fn completions(
    State(app): State<App>,
    Both(request, making): Both<Request, Making>,
) -> Result<Response, ApiError> {
    let limits = app.options.limits;
    let mut wish = making.wish(&limits)?;
    wish.max_tokens = wish.max_tokens.or(Some(MAX_TOKENS));
    if request.echo == Some(true) && wish.logprobs.is_some() {
        let message = "echo: log probabilities are those of the answer, and not of the prompt; leave out echo or logprobs";
        return Err(ApiError::bad_field("echo", message));
    }
    let name = app.models.find(request.model.as_deref())?.name.clone();
    let engine = app.models.engine(request.model.as_deref()).await?;
    let prompt = encode(&engine, request.prompt).await?;
    let echo = if request.echo.unwrap_or_default() {
        engine.model.tokenizer().decode(&prompt.ids)
    } else {
        String::new()
    };
    let n = wish.n;
    let mut answers = ask(&engine, prompt, wish)?;
    let head = Head::new("cmpl-", name);
    if request.stream.unwrap_or_default() {
        let writer = Chunks {
            head,
            n,
            echo,
            with_usage: request.stream_options.unwrap_or_default().include_usage,
        };
        return Ok(stream::respond(answers, writer, limits.answering));
    }
    let whole = timeout(limits.answering, answers.whole()).await;
    let whole = whole.map_err(|_| stream::too_slow())??;
    let choices = whole.iter().enumerate().map(|(index, whole)| {
        let text = format!("{echo}{}", whole.text);
        choice(index, &text, whole.finish.map(finish_name), &whole.scored)
    });
    let choices: Vec<Value> = choices.collect();
    let mut body = head.object("text_completion");
    body.insert("choices".into(), choices.into());
    body.insert("usage".into(), usage(&answers.usage));
    Ok(axum::Json(body).into_response())
}

/// A prompt is text or token ids; a list of one text is one text.
async fn encode(engine: &Arc<Engine>, prompt: Value) -> Result<Prompt, ApiError> {
    let wrong = |message: &str| Err(ApiError::bad_field("prompt", format!("prompt: {message}")));
    let mut prompt = prompt;
    if let Value::Array(list) = &mut prompt
        && let [Value::String(_) | Value::Array(_)] = list[..]
    {
        prompt = list.remove(0);
    }
    let ids: Vec<u32> = match prompt {
        Value::String(text) => Prompt::of_text(engine, text).await?.ids,
        Value::Array(list) if matches!(list.first(), Some(Value::String(_) | Value::Array(_))) => {
            return wrong("one prompt a request, please; several requests are answered together");
        }
        prompt => match serde_json::from_value(prompt) {
            Ok(ids) => ids,
            Err(_) => return wrong("a text or a list of token ids is wanted"),
        },
    };
    engine.check_ids("prompt", ids.iter().copied())?;
    if ids.is_empty() {
        return wrong("there is nothing to continue");
    }
    Ok(Prompt::plain(ids))
}

fn choice(index: usize, text: &str, finish: Option<&str>, scored: &[Scored]) -> Value {
    let logprobs = logprobs::of_completion(scored);
    json!({"index": index, "text": text, "logprobs": logprobs, "finish_reason": finish})
}

/// Writes a stream.
struct Chunks {
    head: Head,
    n: usize,
    echo: String,
    with_usage: bool,
}

impl Chunks {
    fn chunk(&self, choices: Vec<Value>, usage: Value) -> String {
        let mut chunk = self.head.object("text_completion");
        chunk.insert("choices".into(), choices.into());
        if self.with_usage {
            chunk.insert("usage".into(), usage);
        }
        event(&chunk)
    }
}

impl Writer for Chunks {
    fn begin(&mut self, _: &Usage) -> String {
        if self.echo.is_empty() {
            return String::new();
        }
        let echo = |index| self.chunk(vec![choice(index, &self.echo, None, &[])], Value::Null);
        (0..self.n).map(echo).collect()
    }

    fn write(&mut self, happening: Happening) -> String {
        let index = happening.choice;
        let choice = match happening.what {
            Piece::Text(text) | Piece::Reasoning(text) => {
                choice(index, &text, None, &happening.scored)
            }
            Piece::Ended(finish) => choice(index, "", Some(finish_name(finish)), &happening.scored),
            // Plain text is not read as calls.
            Piece::Call(_) => return String::new(),
        };
        self.chunk(vec![choice], Value::Null)
    }

    fn end(&mut self, used: &Usage) -> String {
        let mut text = String::new();
        if self.with_usage {
            text.push_str(&self.chunk(Vec::new(), usage(used)));
        }
        text + "data: [DONE]\n\n"
    }

    fn fail(&mut self, error: &ApiError) -> String {
        event(&error.openai())
    }
}
