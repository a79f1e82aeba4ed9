//! How an answer is written: as text, as one JSON object, or as one object a line.
//!
//! ```text
//! {"id":7042,"text":" Paris"}          for each token; the text is empty in the middle of a character
//! {"id":7042,"text":" Paris","logprob":-0.1,"top":[…]}   the same with --logprobs
//! {"id":null,"text":"…"}               text that was held back until the end, if there is any
//! {"stop":"end","seed":0, …}           at the end: why it ended, numbers of tokens, timings
//! ```

use crate::failure::Failure;
use crate::guided::speculated_json;
use crate::logprobs;
use crate::running::{Answer, Loaded, collect, follow, rate};
use akunu::{Generation, Session, StopReason, TokenLogprobs};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::time::Duration;

/// How an answer is written.
#[derive(Clone, Copy)]
pub enum Style {
    /// As it comes.
    Text,
    /// One object at the end.
    Json,
    /// One object for each token as it comes, and one at the end.
    JsonLines,
}

/// What was asked, for the report.
pub struct Asked<'a> {
    pub loaded: &'a Loaded,
    pub prompt_ids: &'a [u32],
    /// Those of the prompt's tokens from the second on, if somebody asks for them.
    pub prompt_scores: &'a [TokenLogprobs],
    /// How long reading the prompt took.
    pub prefill: Duration,
    pub seed: u64,
}

impl Style {
    /// Takes all tokens of a generation and writes them; why they ended is the result.
    pub fn write(
        self,
        generation: Generation<&mut Session>,
        asked: &Asked,
        out: &mut dyn Write,
    ) -> Result<StopReason, Failure> {
        let answer = match self {
            Style::Text => {
                let answer = collect(generation, out)?;
                writeln!(out)?;
                answer
            }
            Style::Json => {
                let answer = collect(generation, &mut io::sink())?;
                line(&whole(asked, &answer), out)?;
                answer
            }
            Style::JsonLines => {
                let tokenizer = asked.loaded.model.tokenizer();
                let answer = follow(generation, |token, text| {
                    let mut object = json!({ "id": token.map(|token| token.id), "text": text });
                    if let Some(of) = token.and_then(|token| token.logprobs.as_ref()) {
                        object["logprob"] = json!(of.chosen);
                        object["top"] = logprobs::best(Some(of), tokenizer);
                    }
                    line(&object, out)
                })?;
                line(&summary(asked, &answer), out)?;
                answer
            }
        };
        Ok(answer.stop)
    }
}

/// One object on a line of its own, at once.
pub fn line(object: &Value, out: &mut dyn Write) -> Result<(), Failure> {
    serde_json::to_writer(&mut *out, object)?;
    writeln!(out)?;
    Ok(out.flush()?)
}

/// What scripts read when they want everything at once.
fn whole(asked: &Asked, answer: &Answer) -> Value {
    let mut object = json!({
        "model": asked.loaded.model.path(),
        "device": asked.loaded.device,
        "prompt_ids": asked.prompt_ids,
        "ids": answer.ids,
        "text": answer.text,
        "stop": answer.stop.name(),
        "seed": asked.seed,
        "speculation": speculated_json(&answer.speculated),
        "timings": timings(asked, answer),
    });
    if !asked.prompt_scores.is_empty() {
        let tokenizer = asked.loaded.model.tokenizer();
        object["prompt_logprobs"] =
            logprobs::of_prompt(asked.prompt_ids, asked.prompt_scores, tokenizer);
    }
    if !answer.scored.is_empty() {
        object["logprobs"] = logprobs::list(&answer.scored, asked.loaded.model.tokenizer());
    }
    object
}

/// What scripts read after they have seen the tokens.
fn summary(asked: &Asked, answer: &Answer) -> Value {
    json!({
        "model": asked.loaded.model.path(),
        "device": asked.loaded.device,
        "stop": answer.stop.name(),
        "seed": asked.seed,
        "n_prompt": asked.prompt_ids.len(),
        "n": answer.ids.len(),
        "speculation": speculated_json(&answer.speculated),
        "timings": timings(asked, answer),
    })
}

fn timings(asked: &Asked, answer: &Answer) -> Value {
    let milliseconds = |took: Duration| took.as_secs_f64() * 1e3;
    let prefill = asked.prefill;
    json!({
        "load_ms": milliseconds(asked.loaded.took),
        "prefill_ms": milliseconds(prefill),
        "prefill_tok_s": rate(asked.prompt_ids.len(), prefill),
        "first_token_ms": milliseconds(prefill + answer.first),
        "decode_ms": milliseconds(answer.rest),
        "decode_tok_s": answer.decode_rate(),
    })
}
