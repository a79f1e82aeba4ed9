//! The tests themselves: what is timed, and what is not.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::running::read_prompt;
use akunu::{
    Batch, EngineError, GenerateOptions, Model, Progress, SequenceId, Session, SessionOptions,
    Speculation,
};
use std::fmt;
use std::time::Instant;

/// One test.
#[derive(Clone, Copy, Debug)]
pub enum Test {
    /// A prompt is read from an empty cache.
    Read { tokens: u32 },
    /// Tokens are written after `depth` others.
    Write { tokens: u32, depth: u32 },
    /// The same by several sequences at once, each of which writes as many.
    WriteTogether {
        tokens: u32,
        depth: u32,
        sequences: u32,
    },
}

impl Test {
    /// Positions that it needs.
    pub fn context(&self) -> u32 {
        match *self {
            Test::Read { tokens } => tokens,
            Test::Write { tokens, depth } | Test::WriteTogether { tokens, depth, .. } => {
                depth.max(1).saturating_add(tokens).saturating_add(1)
            }
        }
    }

    /// Tokens that one step writes; `None` where none are written.
    pub fn tokens_a_step(&self) -> Option<u32> {
        match *self {
            Test::Read { .. } => None,
            Test::Write { .. } => Some(1),
            Test::WriteTogether { sequences, .. } => Some(sequences),
        }
    }

    /// Tokens in the cache of a sequence halfway through the writing.
    pub fn middle(&self) -> u32 {
        match *self {
            Test::Read { tokens } => tokens / 2,
            Test::Write { tokens, depth } | Test::WriteTogether { tokens, depth, .. } => {
                depth.saturating_add(tokens / 2)
            }
        }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Test::Read { tokens } => write!(f, "pp{tokens}"),
            Test::Write { tokens, depth: 0 } => write!(f, "tg{tokens}"),
            Test::Write { tokens, depth } => write!(f, "tg{tokens} @ d{depth}"),
            Test::WriteTogether {
                tokens,
                depth: 0,
                sequences,
            } => write!(f, "tg{tokens} @ b{sequences}"),
            Test::WriteTogether {
                tokens,
                depth,
                sequences,
            } => write!(f, "tg{tokens} @ d{depth} b{sequences}"),
        }
    }
}

/// A session that tests run in, and others for those that need several.
pub struct Bench<'m> {
    model: &'m Model,
    options: SessionOptions,
    session: Session,
    others: Vec<Session>,
    /// Texts that were read: none is read twice, for what is known already costs nothing.
    n_texts: u32,
    interrupt: Interrupt,
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
            model,
            options,
            others: Vec::new(),
            n_texts: 0,
            interrupt: Interrupt::listen(),
        })
    }

    /// Runs a test, and returns tokens a second. A signal ends it between two chunks or steps.
    pub fn run(&mut self, test: &Test) -> Result<f64, Failure> {
        self.session.clear();
        let (tokens, seconds) = match *test {
            Test::Read { tokens } => (tokens, self.read(tokens)?),
            Test::Write { tokens, depth } => (tokens, self.write(tokens, depth)?),
            Test::WriteTogether {
                tokens,
                depth,
                sequences,
            } => {
                let mut batch = self.model.batch(sequences)?;
                let joined = self.join(&mut batch, sequences, (tokens, depth))?;
                let seconds = time_steps(&mut batch)?;
                let left = joined.into_iter().filter_map(|id| batch.leave(id));
                self.others.extend(left);
                (tokens * sequences, seconds)
            }
        };
        self.check_interrupt()?;
        Ok(f64::from(tokens) / seconds)
    }

    /// Where signals are noticed.
    pub fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// An error when a signal asked us to stop.
    pub fn check_interrupt(&self) -> Result<(), Failure> {
        self.interrupt.check()
    }

    fn read(&mut self, tokens: u32) -> Result<f64, Failure> {
        let ids = self.tokens(tokens);
        let begin = Instant::now();
        read_prompt(&mut self.session, &ids, &self.interrupt)?;
        Ok(begin.elapsed().as_secs_f64())
    }

    fn write(&mut self, tokens: u32, depth: u32) -> Result<f64, Failure> {
        let ids = self.tokens(depth.max(1));
        read_prompt(&mut self.session, &ids, &self.interrupt)?;
        let options = options(tokens, &self.interrupt);
        let mut generation = self.session.generate(options)?;
        // The first one is chosen from what the prompt gave: no step of decoding.
        generation.next().transpose()?;
        let begin = Instant::now();
        for token in generation {
            token?;
        }
        Ok(begin.elapsed().as_secs_f64())
    }

    /// Fills a batch with sequences that will write `tokens` after `depth` others.
    fn join(
        &mut self,
        batch: &mut Batch,
        sequences: u32,
        (tokens, depth): (u32, u32),
    ) -> Result<Vec<SequenceId>, Failure> {
        let mut joined = Vec::new();
        for _ in 0..sequences {
            let mut session = match self.others.pop() {
                Some(session) => session,
                None => self.model.session(self.options)?,
            };
            session.clear();
            let ids = self.tokens(depth.max(1));
            read_prompt(&mut session, &ids, &self.interrupt)?;
            let options = options(tokens, &self.interrupt);
            joined.push(batch.join(session, options).map_err(EngineError::from)?);
        }
        Ok(joined)
    }

    /// Tokens from all over the vocabulary, others at every call.
    fn tokens(&mut self, n: u32) -> Vec<u32> {
        self.n_texts += 1;
        let (text, vocab_size) = (self.n_texts, self.model.config().vocab_size);
        let spread = |i: u32| (i ^ (text << 16)).wrapping_mul(2_654_435_761) % vocab_size;
        (1..=n).map(spread).collect()
    }
}

/// Options for `tokens` steps, whatever the model says: the first token comes before them. Nothing is guessed: what a model with
/// random weights writes repeats itself, and guesses would be right more often than those of a text.
fn options(tokens: u32, interrupt: &Interrupt) -> GenerateOptions {
    GenerateOptions {
        max_tokens: tokens as usize + 1,
        ignore_end: true,
        cancel: interrupt.flag().clone(),
        speculation: Speculation::off(),
        ..GenerateOptions::default()
    }
}

/// Seconds of all steps but the first one, which chooses from what the prompts gave.
fn time_steps(batch: &mut Batch) -> Result<f64, Failure> {
    step(batch)?;
    let begin = Instant::now();
    while batch.is_running() {
        step(batch)?;
    }
    Ok(begin.elapsed().as_secs_f64())
}

/// A step in which no sequence may fail: the speed of the others would be that of a smaller batch.
fn step(batch: &mut Batch) -> Result<(), Failure> {
    for event in batch.step() {
        if let Progress::Failed(error) = event.progress {
            return Err(error.into());
        }
    }
    Ok(())
}
