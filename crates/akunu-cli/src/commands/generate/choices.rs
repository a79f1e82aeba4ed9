//! Several continuations of one text, stepped together: the text is read once, and they share its pages.

use super::output::{Asked, line};
use crate::failure::Failure;
use crate::logprobs;
use akunu::{
    GenerateOptions, Progress, Sampling, SequenceId, Session, StopReason, Token, Tokenizer,
};
use serde_json::{Value, json};
use std::io::Write;

/// One of them.
struct Choice {
    id: SequenceId,
    seed: u64,
    tokens: Vec<Token>,
    tail: String,
    stop: StopReason,
}

/// Continues what the session holds `n` times and writes one object about all.
pub fn write(
    session: Session,
    options: &GenerateOptions,
    n: u32,
    asked: &Asked,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let choices = choose(session, options, n, asked)?;
    let tokenizer = asked.loaded.model.tokenizer();
    let means: Vec<Option<f64>> = choices
        .iter()
        .map(|choice| logprobs::mean(&choice.tokens))
        .collect();
    let best = (0..means.len()).max_by(|&a, &b| {
        let mean = |at: usize| means[at].unwrap_or(f64::NEG_INFINITY);
        // Of equals the first.
        mean(a).total_cmp(&mean(b)).then(b.cmp(&a))
    });
    let wants_logprobs = options.logprobs.is_some();
    let listed = choices.iter().zip(&means);
    let listed: Vec<Value> = listed
        .map(|(choice, mean)| choice.as_json(*mean, wants_logprobs.then_some(tokenizer)))
        .collect();
    let object = json!({
        "model": asked.loaded.model.path(),
        "device": asked.loaded.device,
        "prompt_ids": asked.prompt_ids,
        "choices": listed,
        "best": best,
    });
    line(&object, out)?;
    let is_cut = choices
        .iter()
        .any(|choice| choice.stop == StopReason::Cancelled);
    if is_cut {
        Err(Failure::CutShort)
    } else {
        Ok(())
    }
}

fn choose(
    session: Session,
    options: &GenerateOptions,
    n: u32,
    asked: &Asked,
) -> Result<Vec<Choice>, Failure> {
    let mut batch = asked.loaded.model.batch(n)?;
    let options_of = |at: u32| GenerateOptions {
        sampling: Sampling {
            seed: options.sampling.seed.wrapping_add(at.into()),
            ..options.sampling
        },
        logprobs: Some(options.logprobs.unwrap_or(0)),
        ..options.clone()
    };
    let first = batch
        .join(session, options_of(0))
        .map_err(akunu::EngineError::from)?;
    let mut choices = Vec::with_capacity(n as usize);
    for at in 0..n {
        let id = if at == 0 {
            first
        } else {
            batch.fork(first, options_of(at))?
        };
        choices.push(Choice {
            id,
            seed: options_of(at).sampling.seed,
            tokens: Vec::new(),
            tail: String::new(),
            stop: StopReason::MaxTokens,
        });
    }
    while batch.is_running() {
        for event in batch.step() {
            let Some(choice) = choices
                .iter_mut()
                .find(|choice| choice.id == event.sequence)
            else {
                continue;
            };
            match event.progress {
                Progress::Token(token) => choice.tokens.push(token),
                Progress::Ended { reason, tail } => (choice.stop, choice.tail) = (reason, tail),
                Progress::Failed(error) => return Err(error.into()),
                _ => {}
            }
        }
    }
    Ok(choices)
}

impl Choice {
    fn as_json(&self, mean: Option<f64>, tokenizer: Option<&Tokenizer>) -> Value {
        let texts = self.tokens.iter().map(|token| token.text.as_str());
        let text: String = texts.chain([self.tail.as_str()]).collect();
        let ids: Vec<u32> = self.tokens.iter().map(|token| token.id).collect();
        let mut object = json!({
            "ids": ids,
            "text": text,
            "stop": self.stop.name(),
            "seed": self.seed,
            "mean_logprob": mean,
        });
        if let Some(tokenizer) = tokenizer {
            object["logprobs"] = logprobs::list(&self.tokens, tokenizer);
        }
        object
    }
}
