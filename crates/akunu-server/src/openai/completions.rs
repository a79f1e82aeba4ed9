//! `/v1/completions`: text that goes on, without a chat template.

use std::sync::Arc;

use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::forms::Forms;
use super::logprobs::TextLogprobs;
use super::making::{Making, StreamOptions};
use super::object::{Chunk, Completion, FinishReason, Head};
use crate::answers::{Happening, Piece, Scored, Usage, Whole};
use crate::app::App;
use crate::body::All;
use crate::embedding::Texts;
use crate::engine::Engine;
use crate::error::ApiError;
use crate::question::{FurtherSampling, Prompt, ask};
use crate::stream::{Framing, Reply, Writer};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct CompletionRequest {
    model: Option<String>,
    /// One text, or the ids of its tokens.
    prompt: Texts,
    echo: Option<bool>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
}

/// OpenAI's own default.
const MAX_TOKENS: usize = 16;

/// Continues a text.
pub(crate) async fn completions(
    State(app): State<App>,
    All((request, making, further, forms)): All<(
        CompletionRequest,
        Making,
        FurtherSampling,
        Forms,
    )>,
) -> Result<Reply<Text>, ApiError> {
    let limits = app.options.limits;
    let mut wish = further.over(making.wish(&limits)?, limits.texts)?;
    wish.max_tokens = wish.max_tokens.or(Some(MAX_TOKENS));
    if request.echo == Some(true) && wish.logprobs.is_some() {
        let message = "echo: log probabilities are those of the answer, and not of the prompt; leave out echo or logprobs";
        return Err(ApiError::bad_field("echo", message));
    }
    let name = app.models.find(request.model.as_deref())?.name.clone();
    let engine = app.models.engine(request.model.as_deref()).await?;
    let mut prompt = encode(&engine, request.prompt).await?;
    prompt.grammar = forms.format()?.compiled(&engine).await?;
    let echo = if request.echo.unwrap_or_default() {
        engine.model.tokenizer().decode(&prompt.ids)
    } else {
        String::new()
    };
    let n = wish.n;
    let answers = ask(&engine, prompt, wish)?;
    let with_usage = request.stream_options.unwrap_or_default().include_usage;
    let head = Head::new("cmpl-", name, with_usage);
    let is_stream = request.stream.unwrap_or_default();
    Reply::new(answers, Text { head, n, echo }, is_stream, limits.answering).await
}

/// A prompt is text or token ids; a list of one text is one text.
async fn encode(engine: &Arc<Engine>, prompt: Texts) -> Result<Prompt, ApiError> {
    let wrong = |message: &str| Err(ApiError::bad_field("prompt", format!("prompt: {message}")));
    let ids = match prompt.single() {
        Some(Texts::One(text)) => Prompt::of_text(engine, text).await?.ids,
        Some(Texts::Ids(ids)) => ids,
        _ => {
            return wrong("one prompt a request, please; several requests are answered together");
        }
    };
    engine.check_ids("prompt", ids.iter().copied())?;
    if ids.is_empty() {
        return wrong("there is nothing to continue");
    }
    Ok(Prompt::plain(ids))
}

/// One of the answers, or what it goes on with.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TextChoice {
    index: usize,
    text: String,
    logprobs: Option<TextLogprobs>,
    finish_reason: Option<FinishReason>,
}

impl TextChoice {
    fn new(index: usize, text: String, scored: &[Scored]) -> TextChoice {
        TextChoice {
            index,
            text,
            logprobs: TextLogprobs::of(scored),
            finish_reason: None,
        }
    }
}

/// Writes the answers.
pub(crate) struct Text {
    head: Head,
    n: usize,
    echo: String,
}

const OBJECT: &str = "text_completion";

impl Writer for Text {
    type Whole = Completion<TextChoice>;
    type Event = Chunk<TextChoice>;
    const FRAMING: Framing = Framing::Data;

    fn whole(self, answers: Vec<Whole>, usage: &Usage) -> Completion<TextChoice> {
        let choices = answers.into_iter().enumerate().map(|(index, whole)| {
            let text = self.echo.clone() + &whole.text;
            TextChoice {
                finish_reason: whole.finish.map(FinishReason::from),
                ..TextChoice::new(index, text, &whole.scored)
            }
        });
        let choices = choices.collect();
        self.head.whole(OBJECT, choices, usage)
    }

    fn begin(&mut self, _: &Usage) -> Vec<Chunk<TextChoice>> {
        let n = if self.echo.is_empty() { 0 } else { self.n };
        let echo = |index| {
            let choice = TextChoice::new(index, self.echo.clone(), &[]);
            self.head.part(OBJECT, choice)
        };
        (0..n).map(echo).collect()
    }

    fn write(&mut self, happening: Happening) -> Vec<Chunk<TextChoice>> {
        let (text, finish) = match happening.what {
            Piece::Text(text) | Piece::Reasoning(text) => (text, None),
            Piece::Ended(finish) => (String::new(), Some(finish.into())),
            // Plain text is not read as calls.
            Piece::Begun(_) | Piece::Arguments(_) | Piece::Call(_) => return Vec::new(),
        };
        let choice = TextChoice {
            finish_reason: finish,
            ..TextChoice::new(happening.choice, text, &happening.scored)
        };
        vec![self.head.part(OBJECT, choice)]
    }

    fn end(&mut self, usage: &Usage) -> Vec<Chunk<TextChoice>> {
        self.head.last(OBJECT, usage)
    }

    fn fail(&mut self, error: &ApiError) -> Chunk<TextChoice> {
        Chunk::Failed(error.into())
    }
}
