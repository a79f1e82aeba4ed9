//! `/completion` and `/infill`: text that goes on, as llama.cpp's server has it.

mod plain;

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;

use self::plain::Plain;
use crate::app::App;
use crate::body::All;
use crate::embedding::Texts;
use crate::error::ApiError;
use crate::openai::{Forms, Making};
use crate::question::{FurtherSampling, Gap, Prompt, ask_all};
use crate::stream::Reply;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct PlainRequest {
    /// Texts, or the ids of their tokens.
    prompt: Texts,
}

/// A gap, and what is around it.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct InfillRequest {
    input_prefix: String,
    input_suffix: String,
    /// Other files of the project.
    #[serde(default)]
    input_extra: Vec<ExtraFile>,
    /// Comes after the prefix.
    #[serde(default)]
    prompt: String,
}

/// A file beside the one that has the gap.
#[derive(Deserialize, JsonSchema)]
struct ExtraFile {
    #[serde(default)]
    filename: String,
    text: String,
}

/// Fields of llama.cpp's own.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct PlainFields {
    model: Option<String>,
    /// At most so many tokens; -1 for as many as the context holds.
    n_predict: Option<i64>,
    /// How many of the best tokens are told with their probabilities.
    n_probs: Option<u32>,
    #[serde(default)]
    stream: bool,
}

/// How an answer is made.
type How = (PlainFields, Making, FurtherSampling, Forms);

/// Continues texts.
pub(crate) async fn completion(
    State(app): State<App>,
    All((request, plain, making, further, forms)): All<(
        PlainRequest,
        PlainFields,
        Making,
        FurtherSampling,
        Forms,
    )>,
) -> Result<Reply<Plain>, ApiError> {
    let engine = app.models.engine(plain.model.as_deref()).await?;
    let mut prompts = Vec::new();
    for one in request.prompt.each() {
        prompts.push(match one {
            Texts::One(text) => Prompt::of_text(&engine, text).await?,
            Texts::Ids(ids) => Prompt::plain(ids),
            Texts::Many(_) | Texts::ManyIds(_) => continue,
        });
    }
    answer(app, prompts, Vec::new(), (plain, making, further, forms)).await
}

/// Fills a gap.
pub(crate) async fn infill(
    State(app): State<App>,
    All((request, plain, making, further, forms)): All<(
        InfillRequest,
        PlainFields,
        Making,
        FurtherSampling,
        Forms,
    )>,
) -> Result<Reply<Plain>, ApiError> {
    let engine = app.models.engine(plain.model.as_deref()).await?;
    let files = request.input_extra.into_iter();
    let gap = Gap {
        before: request.input_prefix + &request.prompt,
        after: request.input_suffix,
        files: files.map(|file| (file.filename, file.text)).collect(),
    };
    let (prompt, ends) = gap.prompt("input_suffix", engine.model.tokenizer())?;
    answer(app, vec![prompt], ends, (plain, making, further, forms)).await
}

async fn answer(
    app: App,
    prompts: Vec<Prompt>,
    ends: Vec<u32>,
    (plain, making, further, forms): How,
) -> Result<Reply<Plain>, ApiError> {
    let limits = app.options.limits;
    let mut wish = further.over(making.wish(&limits)?, limits.stops)?;
    wish.stop_ids.extend(ends);
    wish.logprobs = plain.n_probs.filter(|n| *n > 0).or(wish.logprobs);
    if let Some(n) = plain.n_predict {
        wish.max_tokens = usize::try_from(n).ok();
    }
    let name = app.models.find(plain.model.as_deref())?.name.clone();
    let engine = app.models.engine(plain.model.as_deref()).await?;
    let format = forms.format()?;
    let mut formed = Vec::with_capacity(prompts.len());
    for prompt in prompts {
        engine.check_ids("prompt", prompt.ids.iter().copied())?;
        if prompt.ids.is_empty() {
            let message = "prompt: there is nothing to continue";
            return Err(ApiError::bad_field("prompt", message));
        }
        formed.push(format.clone().of_answer(prompt, &engine).await?);
    }
    let writer = Plain::new(name);
    let answers = ask_all(&engine, formed, wish)?;
    Reply::new(answers, writer, plain.stream, limits.answering).await
}
