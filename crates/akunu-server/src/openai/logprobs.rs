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
#[derive(Clone, Serialize, JsonSchema)]
pub(crate) struct TextLogprobs {
    tokens: Vec<String>,
    /// Null for the first token of a prompt.
    token_logprobs: Vec<Option<f32>>,
    top_logprobs: Vec<Option<BTreeMap<String, f32>>>,
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
        (!scored.is_empty()).then(|| {
            let none = TextLogprobs {
                tokens: Vec::new(),
                token_logprobs: Vec::new(),
                top_logprobs: Vec::new(),
            };
            none.with(scored)
        })
    }

    /// Those of a prompt, whose first token nothing comes before.
    pub fn of_prompt(first: &[u8], others: &[Scored]) -> TextLogprobs {
        let first = TextLogprobs {
            tokens: vec![String::from_utf8_lossy(first).into_owned()],
            token_logprobs: vec![None],
            top_logprobs: vec![None],
        };
        first.with(others)
    }

    /// With further tokens.
    pub fn with(mut self, scored: &[Scored]) -> TextLogprobs {
        for Scored { chosen, best } in scored {
            self.tokens.push(text(chosen));
            self.token_logprobs.push(Some(logprob(chosen)));
            let best = best.iter().map(|one| (text(one), logprob(one)));
            self.top_logprobs.push(Some(best.collect()));
        }
        self
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
