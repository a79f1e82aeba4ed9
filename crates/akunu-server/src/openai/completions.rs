//! `/v1/completions`: text that goes on, without a chat template.

use std::sync::Arc;

use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::forms::Forms;
use super::logprobs::TextLogprobs;
use super::making::{Making, StreamOptions};
use super::object::{Chunk, Completion, FinishReason, Head};
use crate::answers::{Answers, Happening, Piece, Scored, Usage, Whole};
use crate::app::App;
use crate::body::All;
use crate::embedding::Texts;
use crate::engine::Engine;
use crate::error::ApiError;
use crate::question::{FurtherSampling, Gap, Prompt, ask_all};
use crate::stream::{Framing, Reply, Writer};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct CompletionRequest {
    model: Option<String>,
    /// Texts, or the ids of their tokens.
    prompt: Texts,
    /// What comes after the answer, for models that were trained to fill in the middle.
    suffix: Option<String>,
    echo: Option<bool>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
}

/// OpenAI's own default.
const MAX_TOKENS: usize = 16;

/// Continues texts.
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
    let mut wish = further.over(making.wish(&limits)?, limits.stops)?;
    wish.max_tokens = wish.max_tokens.or(Some(MAX_TOKENS));
    let name = app.models.find(request.model.as_deref())?.name.clone();
    let engine = app.models.engine(request.model.as_deref()).await?;
    let suffix = request.suffix.filter(|suffix| !suffix.is_empty());
    let (prompts, ends) = prompts(&engine, request.prompt, suffix).await?;
    wish.stop_ids.extend(ends);
    let echo = match request.echo {
        Some(true) => echo(&engine, &prompts, wish.logprobs).await?,
        _ => prompts.iter().map(|_| Echo::default()).collect(),
    };
    let n = wish.n;
    let answers = if wish.max_tokens == Some(0) {
        let n_tokens = prompts.iter().map(|prompt| prompt.ids.len()).sum();
        Answers::empty(engine, prompts.len() * n, n_tokens)
    } else {
        let format = forms.format()?;
        let mut formed = Vec::with_capacity(prompts.len());
        for prompt in prompts {
            formed.push(format.clone().of_answer(prompt, &engine).await?);
        }
        ask_all(&engine, formed, wish)?
    };
    let with_usage = request.stream_options.unwrap_or_default().include_usage;
    let head = Head::new("cmpl-", name, with_usage);
    let is_stream = request.stream.unwrap_or_default();
    Reply::new(answers, Text { head, n, echo }, is_stream, limits.answering).await
}

/// The prompts, and the tokens that end their answers.
async fn prompts(
    engine: &Arc<Engine>,
    given: Texts,
    suffix: Option<String>,
) -> Result<(Vec<Prompt>, Vec<u32>), ApiError> {
    let wrong = |message: &str| ApiError::bad_field("prompt", format!("prompt: {message}"));
    let (mut prompts, mut ends) = (Vec::new(), Vec::new());
    for one in given.each() {
        let prompt = match (one, &suffix) {
            (Texts::One(before), Some(after)) => {
                let gap = Gap {
                    before,
                    after: after.clone(),
                    ..Gap::default()
                };
                let (prompt, its_ends) = gap.prompt("suffix", engine.model.tokenizer())?;
                ends = its_ends;
                prompt
            }
            (_, Some(_)) => return Err(wrong("with a suffix it must be a text")),
            (Texts::One(text), None) => Prompt::of_text(engine, text).await?,
            (Texts::Ids(ids), None) => Prompt::plain(ids),
            (Texts::Many(_) | Texts::ManyIds(_), None) => continue,
        };
        engine.check_ids("prompt", prompt.ids.iter().copied())?;
        if prompt.ids.is_empty() {
            return Err(wrong("there is nothing to continue"));
        }
        prompts.push(prompt);
    }
    match prompts.is_empty() {
        true => Err(wrong("there is nothing to continue")),
        false => Ok((prompts, ends)),
    }
}

/// What an answer begins with: the prompt, and how likely its tokens are.
#[derive(Default)]
struct Echo {
    text: String,
    logprobs: Option<TextLogprobs>,
}

/// The prompts, with the probabilities of their tokens and so many of the best, if that is wanted.
async fn echo(
    engine: &Arc<Engine>,
    prompts: &[Prompt],
    n_best: Option<u32>,
) -> Result<Vec<Echo>, ApiError> {
    let tokenizer = engine.model.tokenizer();
    let mut echoes = Vec::with_capacity(prompts.len());
    for Prompt { ids, .. } in prompts {
        let logprobs = match n_best {
            None => None,
            Some(n_best) => {
                let scores = engine.score(ids.clone(), n_best as usize).await?;
                let others = ids.iter().skip(1).zip(&scores);
                let others = others.map(|(id, score)| Scored::of(tokenizer, *id, score));
                let first = ids.first().and_then(|id| tokenizer.token_bytes(*id));
                let others: Vec<Scored> = others.collect();
                Some(TextLogprobs::of_prompt(&first.unwrap_or_default(), &others))
            }
        };
        echoes.push(Echo {
            text: tokenizer.decode(ids),
            logprobs,
        });
    }
    Ok(echoes)
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
    fn new(index: usize, text: String, logprobs: Option<TextLogprobs>) -> TextChoice {
        TextChoice {
            index,
            text,
            logprobs,
            finish_reason: None,
        }
    }
}

/// Writes the answers.
pub(crate) struct Text {
    head: Head,
    /// Answers to each prompt.
    n: usize,
    /// What those to each prompt begin with.
    echo: Vec<Echo>,
}

const OBJECT: &str = "text_completion";

impl Writer for Text {
    type Whole = Completion<TextChoice>;
    type Event = Chunk<TextChoice>;
    const FRAMING: Framing = Framing::Data;

    fn whole(self, answers: Vec<Whole>, usage: &Usage) -> Completion<TextChoice> {
        let choices = answers.into_iter().enumerate().map(|(index, whole)| {
            let echo = &self.echo[index / self.n];
            let logprobs = match echo.logprobs.clone() {
                Some(of_prompt) => Some(of_prompt.with(&whole.scored)),
                None => TextLogprobs::of(&whole.scored),
            };
            let text = echo.text.clone() + &whole.text;
            TextChoice {
                finish_reason: whole.finish.map(FinishReason::from),
                ..TextChoice::new(index, text, logprobs)
            }
        });
        let choices = choices.collect();
        self.head.whole(OBJECT, choices, usage)
    }

    fn begin(&mut self, _: &Usage) -> Vec<Chunk<TextChoice>> {
        let begun = |index: usize| {
            let echo = &self.echo[index / self.n];
            let choice = TextChoice::new(index, echo.text.clone(), echo.logprobs.clone());
            (!echo.text.is_empty()).then(|| self.head.part(OBJECT, choice))
        };
        (0..self.echo.len() * self.n).filter_map(begun).collect()
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
            ..TextChoice::new(happening.choice, text, TextLogprobs::of(&happening.scored))
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
