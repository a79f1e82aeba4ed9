//! The tests themselves: what is timed, and what is not.

use crate::failure::Failure;
use akunu_engine::{GenerateOptions, Model, Session, SessionOptions};
use std::fmt;
use std::time::Instant;

/// One test.
#[derive(Clone, Copy, Debug)]
pub enum Test {
    /// A prompt is read from an empty cache.
    Read { tokens: u32 },
    /// Tokens are written after `depth` others.
    Write { tokens: u32, depth: u32 },
}

impl Test {
    /// Positions that it needs.
    pub fn context(&self) -> u32 {
        match *self {
            Test::Read { tokens } => tokens,
            Test::Write { tokens, depth } => depth.max(1).saturating_add(tokens).saturating_add(1),
        }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Test::Read { tokens } => write!(f, "pp{tokens}"),
            Test::Write { tokens, depth: 0 } => write!(f, "tg{tokens}"),
            Test::Write { tokens, depth } => write!(f, "tg{tokens} @ d{depth}"),
        }
    }
}

/// A session that tests run in.
pub struct Bench<'m> {
    session: Session<'m>,
    vocab_size: u32,
}

impl<'m> Bench<'m> {
    /// Room for the largest test.
    pub fn new(model: &'m Model, context: u32) -> Result<Bench<'m>, Failure> {
        let options = SessionOptions {
            context: Some(context),
            ..SessionOptions::default()
        };
        Ok(Bench {
            session: model.session(options)?,
            vocab_size: model.config().vocab_size,
        })
    }

    /// Runs a test, and returns tokens a second.
    pub fn run(&mut self, test: &Test) -> Result<f64, Failure> {
        self.session.clear();
        match *test {
            Test::Read { tokens } => {
                let ids = self.tokens(tokens);
                let begin = Instant::now();
                self.session.feed(&ids)?;
                Ok(f64::from(tokens) / begin.elapsed().as_secs_f64())
            }
            Test::Write { tokens, depth } => {
                let ids = self.tokens(depth.max(1));
                self.session.feed(&ids)?;
                let mut generation = self.session.generate(GenerateOptions {
                    max_tokens: tokens as usize + 1,
                    ignore_end: true,
                    ..GenerateOptions::default()
                })?;
                // The first one is chosen from what the prompt gave: no step of decoding.
                generation.next().transpose()?;
                let begin = Instant::now();
                for token in generation {
                    token?;
                }
                Ok(f64::from(tokens) / begin.elapsed().as_secs_f64())
            }
        }
    }

    /// Tokens from all over the vocabulary, the same at every call.
    fn tokens(&self, n: u32) -> Vec<u32> {
        let spread = |i: u32| i.wrapping_mul(2_654_435_761) % self.vocab_size;
        (1..=n).map(spread).collect()
    }
}
