//! Log probabilities as scripts read them.
//!
//! ```text
//! {"id":7042,"text":" Paris","logprob":-0.11,"top":[{"id":7042,"text":" Paris","logprob":-0.11}, …]}
//! ```
//!
//! They are natural logarithms of the model's own probabilities, before penalties, cuts and temperature.

use akunu::{Token, TokenLogprobs, Tokenizer};
use serde_json::{Value, json};

/// Those of some tokens.
pub fn list(tokens: &[Token], tokenizer: &Tokenizer) -> Value {
    let of_token = |token: &Token| {
        let mut object = one(
            token.id,
            token.logprobs.as_ref().map(|of| of.chosen),
            tokenizer,
        );
        object["top"] = best(token.logprobs.as_ref(), tokenizer);
        object
    };
    tokens.iter().map(of_token).collect()
}

/// Those of the tokens of a prompt. Nothing comes before the first one, which therefore has none.
pub fn of_prompt(ids: &[u32], scores: &[TokenLogprobs], tokenizer: &Tokenizer) -> Value {
    let scores = [None].into_iter().chain(scores.iter().map(Some));
    let of_token = |(&id, of): (&u32, Option<&TokenLogprobs>)| {
        let mut object = one(id, of.map(|of| of.chosen), tokenizer);
        object["top"] = best(of, tokenizer);
        object
    };
    ids.iter().zip(scores).map(of_token).collect()
}

/// The best tokens and theirs.
pub fn best(logprobs: Option<&TokenLogprobs>, tokenizer: &Tokenizer) -> Value {
    let top = logprobs.map_or(&[][..], |of| &of.top);
    top.iter()
        .map(|&(id, logprob)| one(id, Some(logprob), tokenizer))
        .collect()
}

fn one(id: u32, logprob: Option<f32>, tokenizer: &Tokenizer) -> Value {
    let text = tokenizer.token_bytes(id).unwrap_or_default();
    json!({ "id": id, "text": String::from_utf8_lossy(&text), "logprob": logprob })
}

/// The mean of the log probabilities of chosen tokens, by which choices are compared.
pub fn mean(tokens: &[Token]) -> Option<f64> {
    let chosen = tokens.iter().filter_map(|token| token.logprobs.as_ref());
    let (mut sum, mut n) = (0.0, 0u32);
    for of in chosen {
        sum += f64::from(of.chosen);
        n += 1;
    }
    (n > 0).then(|| sum / f64::from(n))
}
