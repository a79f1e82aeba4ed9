//! A prompt as tokens, and how its answer is read.

use std::sync::Arc;

use akunu::{EncodeOptions, Grammar};

use super::unique::Unique;
use crate::blocking::elsewhere;
use crate::calls::Tool;
use crate::engine::Engine;
use crate::error::ApiError;

/// A prompt as tokens, and how its answer is read.
pub(crate) struct Prompt {
    pub ids: Vec<u32>,
    /// The tools that may be called.
    pub tools: Arc<[Tool]>,
    /// How many calls an answer may have.
    pub max_calls: usize,
    /// The end of the thought within which the prompt ends.
    pub thought: Option<&'static str>,
    /// Texts that end an answer, besides those that are wished for.
    pub stop: Vec<String>,
    /// Whether thoughts and calls are told from text.
    pub is_read: bool,
    /// The form of the answer.
    pub grammar: Option<Grammar>,
    /// The check of a whole answer.
    pub unique: Option<Unique>,
}

impl Prompt {
    /// Text to be continued as it is. Control tokens in it are such.
    pub async fn of_text(engine: &Arc<Engine>, text: String) -> Result<Prompt, ApiError> {
        let engine = Arc::clone(engine);
        let options = EncodeOptions {
            add_special: true,
            parse_special: true,
            ..EncodeOptions::default()
        };
        let encode = move || Ok(engine.model.tokenizer().encode(&text, options));
        Ok(Prompt::plain(elsewhere(encode).await?))
    }

    /// Tokens to be continued.
    pub fn plain(ids: Vec<u32>) -> Prompt {
        Prompt {
            ids,
            tools: Arc::from([]),
            max_calls: 0,
            thought: None,
            stop: Vec::new(),
            is_read: false,
            grammar: None,
            unique: None,
        }
    }
}
