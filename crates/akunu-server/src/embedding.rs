//! Texts as vectors, for all dialects.

use std::sync::Arc;

use akunu::{EmbedOptions, Embedder, EncodeOptions};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::app::App;
use crate::blocking::elsewhere;
use crate::engine::Engine;
use crate::error::ApiError;
use crate::loaded::Loaded;
use crate::stats::Task;

/// One text or several, as text or as token ids.
#[derive(Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "texts or token ids are wanted, one or a list of them"
)]
pub(crate) enum Texts {
    One(#[schemars(length(min = 1))] String),
    Many(#[schemars(length(min = 1, max = 2048))] Vec<String>),
    Ids(#[schemars(length(min = 1))] Vec<u32>),
    ManyIds(#[schemars(length(min = 1, max = 2048))] Vec<Vec<u32>>),
}

impl Texts {
    fn len(&self) -> usize {
        match self {
            Texts::One(_) | Texts::Ids(_) => 1,
            Texts::Many(texts) => texts.len(),
            Texts::ManyIds(lists) => lists.len(),
        }
    }

    /// Each text by itself.
    pub fn each(self) -> Vec<Texts> {
        match self {
            Texts::Many(texts) => texts.into_iter().map(Texts::One).collect(),
            Texts::ManyIds(lists) => lists.into_iter().map(Texts::Ids).collect(),
            one => vec![one],
        }
    }
}

/// Vectors of length 1.
pub(crate) struct Made {
    pub vectors: Vec<Vec<f32>>,
    pub n_tokens: usize,
}

/// The vector of each text, from the model of this name.
pub(crate) async fn of(
    app: &App,
    model: Option<&str>,
    texts: Texts,
    options: EmbedOptions,
) -> Result<Made, ApiError> {
    let stats = Arc::clone(&app.models.find(model)?.stats);
    let model = app.models.load(model).await?;
    let (n_texts, max) = (texts.len(), app.options.limits.texts);
    if n_texts == 0 || n_texts > max {
        let message = format!("input has {n_texts} texts; it must have 1 to {max}");
        return Err(ApiError::bad_field("input", message));
    }
    let mut task = Task::new(&stats);
    task.run();
    let made = made(&model, texts, options).await;
    if let Ok(made) = &made {
        stats.read(n_texts, made.n_tokens);
    }
    task.end_with(&made);
    made
}

async fn made(model: &Loaded, texts: Texts, options: EmbedOptions) -> Result<Made, ApiError> {
    match model {
        Loaded::Engine(engine) => hidden_states(engine, texts, options).await,
        Loaded::Embedder(embedder) => encoded(embedder.clone(), texts, options).await,
        Loaded::Reranker(_) => Err(ApiError::bad_field(
            "model",
            "this model ranks documents and gives no embeddings",
        )),
        Loaded::Speech(_) => Err(ApiError::bad_field(
            "model",
            "this model hears recordings and gives no embeddings",
        )),
    }
}

/// The vectors of an encoder.
async fn encoded(
    embedder: Embedder,
    texts: Texts,
    options: EmbedOptions,
) -> Result<Made, ApiError> {
    let texts = match texts {
        Texts::One(text) => vec![text],
        Texts::Many(texts) => texts,
        Texts::Ids(_) | Texts::ManyIds(_) => {
            let message = "this model takes texts, and no token ids";
            return Err(ApiError::bad_field("input", message));
        }
    };
    elsewhere(move || {
        let made = embedder.embed_with(&texts, options);
        let made = made.map_err(of_embedder)?;
        Ok(Made {
            n_tokens: made.iter().map(|made| made.n_tokens).sum(),
            vectors: made.into_iter().map(|made| made.vector).collect(),
        })
    })
    .await
}

/// Problems with the texts are reported to the client.
fn of_embedder(error: akunu::Error) -> ApiError {
    match error {
        akunu::Error::Dimensions { .. } => ApiError::bad_field("dimensions", error.to_string()),
        akunu::Error::TextTooLong { .. } => ApiError {
            code: Some("context_length_exceeded"),
            ..ApiError::bad_field("input", error.to_string())
        },
        akunu::Error::EmptyText { .. } => ApiError::bad_field("input", error.to_string()),
        other => other.into(),
    }
}

/// The hidden states of a model that generates text.
async fn hidden_states(
    engine: &Arc<Engine>,
    texts: Texts,
    options: EmbedOptions,
) -> Result<Made, ApiError> {
    let max = engine.model.config().dim as usize;
    let kept = options.dimensions.unwrap_or(max);
    if !(1..=max).contains(&kept) {
        let error = akunu::Error::Dimensions { found: kept, max };
        return Err(of_embedder(error));
    }
    let shared = Arc::clone(engine);
    let mut lists = elsewhere(move || Ok(encode(&shared, texts))).await?;
    if !options.strict {
        lists
            .iter_mut()
            .for_each(|ids| ids.truncate(engine.context as usize));
    }
    // All are looked at before the first is computed.
    let vocab_size = engine.model.config().vocab_size;
    for ids in &lists {
        if ids.len() > engine.context as usize {
            let mut refused = ApiError::too_long(ids.len(), engine.context);
            refused.param = Some("input".into());
            return Err(refused);
        }
        if ids.is_empty() || ids.iter().any(|id| *id >= vocab_size) {
            let message = format!(
                "input: a text is empty, or has a token beyond the vocabulary of {vocab_size}"
            );
            return Err(ApiError::bad_field("input", message));
        }
    }
    let n_tokens = lists.iter().map(Vec::len).sum();
    let mut vectors = Vec::with_capacity(lists.len());
    for ids in lists {
        let mut vector = engine.embed(ids).await?;
        vector.truncate(kept);
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        if length > 0.0 {
            vector.iter_mut().for_each(|x| *x /= length);
        }
        vectors.push(vector);
    }
    Ok(Made { vectors, n_tokens })
}

fn encode(engine: &Engine, texts: Texts) -> Vec<Vec<u32>> {
    let options = EncodeOptions {
        add_special: true,
        ..EncodeOptions::default()
    };
    let encode = |text: String| engine.model.tokenizer().encode(&text, options);
    match texts {
        Texts::One(text) => vec![encode(text)],
        Texts::Many(texts) => texts.into_iter().map(encode).collect(),
        Texts::Ids(ids) => vec![ids],
        Texts::ManyIds(lists) => lists,
    }
}
