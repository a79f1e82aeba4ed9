//! How likely tokens were, as OpenAI writes it.

use serde_json::{Map, Value, json};

use crate::answers::{Likely, Scored};

/// What OpenAI writes for a token that was impossible.
const LEAST: f32 = -9999.0;

/// `logprobs` of a chat; null where nobody asked.
pub(super) fn of_chat(scored: &[Scored]) -> Value {
    if scored.is_empty() {
        return Value::Null;
    }
    let content: Vec<Value> = scored
        .iter()
        .map(|token| {
            let mut entry = likely(&token.chosen);
            let best: Vec<Value> = token.best.iter().map(likely).collect();
            entry["top_logprobs"] = best.into();
            entry
        })
        .collect();
    json!({"content": content, "refusal": null})
}

/// `logprobs` of a completion; null where nobody asked.
pub(super) fn of_completion(scored: &[Scored]) -> Value {
    if scored.is_empty() {
        return Value::Null;
    }
    let tokens: Vec<String> = scored.iter().map(|token| text(&token.chosen)).collect();
    let values: Vec<f32> = scored.iter().map(|token| logprob(&token.chosen)).collect();
    let best: Vec<Map<String, Value>> = scored
        .iter()
        .map(|token| {
            let best = token.best.iter();
            best.map(|one| (text(one), logprob(one).into())).collect()
        })
        .collect();
    json!({"tokens": tokens, "token_logprobs": values, "top_logprobs": best})
}

fn likely(token: &Likely) -> Value {
    json!({"token": text(token), "logprob": logprob(token), "bytes": token.bytes})
}

fn text(token: &Likely) -> String {
    String::from_utf8_lossy(&token.bytes).into_owned()
}

/// JSON has no infinity.
fn logprob(token: &Likely) -> f32 {
    token.logprob.max(LEAST)
}
