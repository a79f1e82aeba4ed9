//! How likely tokens were, as OpenAI writes it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::answers::{Likely, Scored};

/// What OpenAI writes for a token that was impossible: JSON has no infinity.
const LEAST: f32 = -9999.0;

/// `logprobs` of a chat.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ChatLogprobs {
    content: Vec<ScoredToken>,
    refusal: (),
}

#[derive(Serialize, JsonSchema)]
struct ScoredToken {
    #[serde(flatten)]
    chosen: Token,
    top_logprobs: Vec<Token>,
}

#[derive(Serialize, JsonSchema)]
struct Token {
    token: String,
    logprob: f32,
    bytes: Vec<u8>,
}

/// `logprobs` of a completion.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TextLogprobs {
    tokens: Vec<String>,
    token_logprobs: Vec<f32>,
    top_logprobs: Vec<BTreeMap<String, f32>>,
}

impl ChatLogprobs {
    /// `None` where nobody asked.
    pub fn of(scored: &[Scored]) -> Option<ChatLogprobs> {
        let content = scored.iter().map(|token| ScoredToken {
            chosen: Token::of(&token.chosen),
            top_logprobs: token.best.iter().map(Token::of).collect(),
        });
        (!scored.is_empty()).then(|| ChatLogprobs {
            content: content.collect(),
            refusal: (),
        })
    }
}

impl TextLogprobs {
    /// `None` where nobody asked.
    pub fn of(scored: &[Scored]) -> Option<TextLogprobs> {
        let chosen = || scored.iter().map(|token| &token.chosen);
        let best = scored.iter().map(|token| {
            let best = token.best.iter();
            best.map(|one| (text(one), logprob(one))).collect()
        });
        (!scored.is_empty()).then(|| TextLogprobs {
            tokens: chosen().map(text).collect(),
            token_logprobs: chosen().map(logprob).collect(),
            top_logprobs: best.collect(),
        })
    }
}

impl Token {
    fn of(token: &Likely) -> Token {
        Token {
            token: text(token),
            logprob: logprob(token),
            bytes: token.bytes.clone(),
        }
    }
}

fn text(token: &Likely) -> String {
    String::from_utf8_lossy(&token.bytes).into_owned()
}

fn logprob(token: &Likely) -> f32 {
    token.logprob.max(LEAST)
}
