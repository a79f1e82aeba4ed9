//! Texts as vectors, for all dialects.

use std::sync::Arc;

use akunu::EncodeOptions;
use serde::Deserialize;

use crate::blocking::elsewhere;
use crate::engine::Engine;
use crate::error::ApiError;
use crate::options::Limits;

/// One text or several, as text or as token ids.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Texts {
    One(String),
    Many(Vec<String>),
    Ids(Vec<u32>),
    ManyIds(Vec<Vec<u32>>),
}

/// Vectors of length 1.
pub(crate) struct Made {
    pub vectors: Vec<Vec<f32>>,
    pub n_tokens: usize,
}

/// The vector of each text.
pub(crate) async fn of(
    engine: &Arc<Engine>,
    texts: Texts,
    limits: &Limits,
) -> Result<Made, ApiError> {
    let shared = Arc::clone(engine);
    let lists = elsewhere(move || encode(&shared, texts)).await?;
    if lists.is_empty() || lists.len() > limits.texts {
        let message = format!(
            "input has {} texts; it must have 1 to {}",
            lists.len(),
            limits.texts
        );
        return Err(ApiError::bad_field("input", message));
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
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        if length > 0.0 {
            vector.iter_mut().for_each(|x| *x /= length);
        }
        vectors.push(vector);
    }
    Ok(Made { vectors, n_tokens })
}

fn encode(engine: &Engine, texts: Texts) -> Result<Vec<Vec<u32>>, ApiError> {
    let options = EncodeOptions {
        add_special: true,
        parse_special: false,
    };
    let encode = |text: String| Ok(engine.model.tokenizer().encode(&text, options)?);
    match texts {
        Texts::One(text) => Ok(vec![encode(text)?]),
        Texts::Many(texts) => texts.into_iter().map(encode).collect(),
        Texts::Ids(ids) => Ok(vec![ids]),
        Texts::ManyIds(lists) => Ok(lists),
    }
}
