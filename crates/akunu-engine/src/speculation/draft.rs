//! A draft model, which reads what the model reads and says how it would go on.
//!
//! A guess takes the time of reading what is new since the last guesses, usually a token or two, and of one step of the
//! draft model. Reading a prompt and loading programs happen once, so that neither counts as the time of a guess. After a
//! part of the answer without guesses the draft has to catch up, which takes time of its own.
//!
//! Where the draft is wrong, its second choice is often right. A row for that choice needs no step of the draft. It is
//! guessed in the place where it is most likely to be needed, by the draft's own probabilities p of its first choices and
//! q of its second ones:
//!
//! ```text
//! the place i with the largest p₀ p₁ … pᵢ₋₁ qᵢ
//! ```

use std::ops::ControlFlow;
use std::time::Instant;

use super::lookup::OtherTokens;
use super::text::Text;
use super::{DraftModel, Speculation};
use crate::error::EngineError;
use crate::options::{GenerateOptions, Token};
use crate::session::{Session, SessionOptions};

/// Tokens that are read before guessing, at most, where guesses follow each other: more of them are to catch up.
const MAX_NEW: usize = 8;
/// Weight of a new time against those before.
const NEW: f64 = 0.2;

/// A draft model with the text of one answer.
pub(super) struct Draft {
    session: Session,
    /// How it chooses tokens: as the model does.
    options: GenerateOptions,
    /// Seconds of a guess lately; 0 before any was made.
    seconds: f64,
    /// Seconds of reading one of many tokens, lately; 0 before that was measured.
    reading: f64,
}

/// What a draft model guesses.
#[derive(Default)]
pub(super) struct Guessed {
    /// Its first choices.
    pub tokens: Vec<u32>,
    /// Its second choice in one place.
    pub second: Option<OtherTokens>,
}

impl Draft {
    /// Drafts for an answer with these options in `session`. Second choices are guessed only if guesses may branch and the
    /// most likely tokens are taken: among draws, how likely a token is does not say which one would have come second.
    pub fn new(
        draft: &DraftModel,
        options: &GenerateOptions,
        (session, can_branch): (&Session, bool),
    ) -> Result<Draft, EngineError> {
        let is_greedy = options.sampling.temperature <= 0.0;
        let session = draft.model.session(SessionOptions {
            context: Some(session.context()),
            chunk: session.chunk() as u32,
            ..SessionOptions::default()
        })?;
        let options = GenerateOptions {
            sampling: options.sampling,
            logit_bias: options.logit_bias.clone(),
            dry_breakers: options.dry_breakers.clone(),
            cancel: options.cancel.clone(),
            logprobs: (is_greedy && can_branch).then_some(2),
            ignore_end: true,
            speculation: Speculation::off(),
            ..GenerateOptions::default()
        };
        Ok(Draft {
            session,
            options,
            seconds: 0.0,
            reading: 0.0,
        })
    }

    /// Seconds that a guess took lately.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Seconds that it takes to catch up with a text of so many tokens; 0 for the prompt, which it reads in any case.
    pub fn behind(&self, n_tokens: usize) -> f64 {
        let known = self.session.tokens().len();
        match n_tokens.saturating_sub(known) {
            n_new if known > 0 && n_new > MAX_NEW => self.reading * n_new as f64,
            _ => 0.0,
        }
    }

    /// The `n` tokens that the draft model says after a text: fewer at the end of the context; none if it has no pages
    /// left, or if the answer is cancelled meanwhile.
    pub fn guess(&mut self, text: Text, n: usize) -> Result<Guessed, EngineError> {
        match self.try_guess(text, n) {
            Err(EngineError::PoolFull { .. } | EngineError::Cancelled { .. }) => {
                Ok(Guessed::default())
            }
            guessed => guessed,
        }
    }

    fn try_guess(&mut self, text: Text, n: usize) -> Result<Guessed, EngineError> {
        let n_programs = self.session.model().runtime().n_programs();
        let mut begin = Instant::now();
        let cancel = self.options.cancel.clone();
        let tokens = [text.before, text.pending].concat();
        let fed = self.session.feed_watched(&tokens, &mut |_| {
            if cancel.is_set() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        if fed.processed > MAX_NEW {
            let took = begin.elapsed().as_secs_f64();
            note(&mut self.reading, took / fed.processed as f64);
            begin = Instant::now();
        }
        let generation = self.session.generate(GenerateOptions {
            max_tokens: n,
            max_chain: n as u32,
            n_prompt: Some(text.n_prompt),
            ..self.options.clone()
        })?;
        let tokens: Vec<Token> = generation.collect::<Result<_, _>>()?;
        if self.session.model().runtime().n_programs() == n_programs {
            note(&mut self.seconds, begin.elapsed().as_secs_f64() / n as f64);
        }
        Ok(Guessed {
            tokens: tokens.iter().map(|token| token.id).collect(),
            second: second_choice(&tokens),
        })
    }
}

/// Takes note of a time beside those before it.
fn note(known: &mut f64, seconds: f64) {
    *known = match *known {
        0.0 => seconds,
        // Somebody else had the machine: one such time says little.
        before => before + NEW * (seconds.min(2.0 * before) - before),
    };
}

/// The second choice that is most likely to be needed, by the log probabilities of some tokens.
fn second_choice(tokens: &[Token]) -> Option<OtherTokens> {
    let mut reached = 0.0;
    let mut best: Option<(f32, OtherTokens)> = None;
    for (after, token) in tokens.iter().enumerate() {
        let logprobs = token.logprobs.as_ref()?;
        let mut others = logprobs.top.iter().filter(|(id, _)| *id != token.id);
        if let Some(&(id, logprob)) = others.next() {
            let needed = reached + logprob;
            if best.as_ref().is_none_or(|(most, _)| needed > *most) {
                let tokens = vec![id];
                best = Some((needed, OtherTokens { after, tokens }));
            }
        }
        reached += logprobs.chosen;
    }
    best.map(|(_, second)| second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logprobs::TokenLogprobs;

    /// Tokens with the probabilities of the first and the second choice.
    fn tokens(choices: &[(u32, f32, u32, f32)]) -> Vec<Token> {
        let token = |&(id, p, second, q): &(u32, f32, u32, f32)| Token {
            id,
            text: String::new(),
            logprobs: Some(TokenLogprobs {
                chosen: p.ln(),
                top: vec![(id, p.ln()), (second, q.ln())],
            }),
        };
        choices.iter().map(token).collect()
    }

    /// Fails when the place is taken where a second choice is likely but seldom reached, or the first place always.
    #[test]
    fn the_second_choice_is_guessed_where_it_is_needed_most() {
        let place = |choices: &[(u32, f32, u32, f32)]| {
            second_choice(&tokens(choices)).map(|second| (second.after, second.tokens))
        };
        let doubt_later = [(1, 0.9, 2, 0.05), (3, 0.5, 4, 0.4), (5, 0.5, 6, 0.45)];
        assert_eq!(place(&doubt_later), Some((1, vec![4])));
        let doubt_first = [(1, 0.4, 2, 0.3), (3, 0.5, 4, 0.45)];
        assert_eq!(place(&doubt_first), Some((0, vec![2])));
        assert_eq!(place(&[]), None);
    }
}
