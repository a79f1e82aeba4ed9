//! The guesses of one answer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::judge::{Costs, Judge, Rest, Source};
use super::lookup::{Found, Index};
use super::{Lookup, MAX_DRAFT, Speculated, Speculation, TextPool};
use crate::error::EngineError;
use crate::options::GenerateOptions;
use crate::sampling::Sampling;
use crate::session::{Session, SessionOptions};

/// Guesses from the text when nobody judges them.
const ALWAYS: usize = 8;

/// Guesses for one answer, and how they went.
pub(crate) struct Drafter {
    lookup: Option<(Index, Lookup)>,
    /// What other sequences have said.
    pool: Arc<Mutex<TextPool>>,
    draft: Option<Draft>,
    judge: Judge,
    pub stats: Speculated,
}

/// A draft model with the same text.
struct Draft {
    session: Session,
    sampling: Sampling,
    /// Seconds of a guess, lately.
    seconds: f64,
}

/// What a step guesses for one sequence.
#[derive(Debug)]
pub(crate) struct Proposal {
    /// The guesses.
    pub tokens: Vec<u32>,
    source: Source,
    is_judged: bool,
    /// Time that was spent on guessing.
    seconds: f64,
}

impl Drafter {
    /// `None` where nothing is to be guessed.
    pub fn new(
        speculation: &Speculation,
        sampling: Sampling,
        session: &Session,
    ) -> Result<Option<Drafter>, EngineError> {
        // Mirostat goes from token to token: several rows of one step would all begin with the same bound.
        let is_stepwise = sampling.mirostat_tau > 0.0;
        let is_off = speculation.lookup == Lookup::Off && speculation.draft.is_none();
        if is_off || is_stepwise {
            return Ok(None);
        }
        let lookup = speculation.lookup;
        let draft = match &speculation.draft {
            Some(draft) => Some(Draft {
                session: draft.model.session(SessionOptions {
                    context: Some(session.context()),
                    ..SessionOptions::default()
                })?,
                sampling,
                seconds: 0.0,
            }),
            None => None,
        };
        Ok(Some(Drafter {
            lookup: (lookup != Lookup::Off).then(|| (Index::default(), lookup)),
            pool: session.model().runtime().text_pool(),
            draft,
            judge: Judge::new(),
            stats: Speculated::default(),
        }))
    }

    /// Guesses what follows `before` and `pending`: at most `most` tokens, as many as pay beside the rest of the step.
    pub fn propose(
        &mut self,
        (before, pending): (&[u32], &[u32]),
        most: usize,
        rest: Rest,
        costs: &Costs,
    ) -> Result<Option<Proposal>, EngineError> {
        let found = self.find((before, pending), most, rest, costs);
        let (None, Some(draft)) = (&found, &mut self.draft) else {
            return Ok(found);
        };
        let per_guess = (costs, draft.seconds);
        let most = most.min(MAX_DRAFT);
        match self.judge.best(Source::Model, most, rest, per_guess) {
            0 => Ok(None),
            n => draft.generate(before, pending, n).map(Some),
        }
    }

    /// Adds the tokens of this sequence to the texts that others guess from; the first `known` are already there.
    pub fn tell(&self, tokens: &[u32], known: usize) {
        if self.lookup.is_some() {
            let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
            pool.add(tokens, known);
        }
    }

    /// Guesses from the text itself, or from those of other sequences if they agree longer.
    fn find(
        &mut self,
        (before, pending): (&[u32], &[u32]),
        most: usize,
        rest: Rest,
        costs: &Costs,
    ) -> Option<Proposal> {
        let (index, lookup) = self.lookup.as_mut()?;
        let len = before.len() + pending.len();
        index.follow(len, before.iter().chain(pending));
        let most = most.min(MAX_DRAFT);
        let own = index.find(most);
        let pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        let others = pool.find(index.end(), most);
        drop(pool);
        let length = |found: &Option<Found>| found.as_ref().map_or(0, |found| found.length);
        let is_own = own.is_some() && length(&own) >= length(&others);
        let mut found = if is_own { own } else { others }?;
        let source = if is_own {
            Source::Text(found.length)
        } else {
            Source::Pool(found.length)
        };
        let is_judged = *lookup == Lookup::Auto;
        let n = if is_judged {
            let most = found.tokens.len();
            self.judge.best(source, most, rest, (costs, 0.0))
        } else {
            ALWAYS
        };
        found.tokens.truncate(n);
        (!found.tokens.is_empty()).then_some(Proposal {
            tokens: found.tokens,
            source,
            is_judged,
            seconds: 0.0,
        })
    }

    /// Whether there may be something to guess after these, so that nothing should be computed ahead.
    pub fn may_propose(
        &mut self,
        text: (&[u32], &[u32]),
        most: usize,
        rest: Rest,
        costs: &Costs,
    ) -> bool {
        self.draft.is_some() || self.find(text, most, rest, costs).is_some()
    }

    /// Tokens that some guesses are expected to add.
    pub fn expected(&self, proposal: &Proposal) -> f64 {
        self.judge.expected(proposal.source, proposal.tokens.len())
    }

    /// Some tokens came without guesses.
    pub fn plain(&mut self, tokens: usize) {
        self.judge.plain(tokens);
    }

    /// A step checked a proposal: it took `extra` seconds more than without, where a token takes `token` seconds.
    pub fn learn(&mut self, proposal: &Proposal, n_right: usize, extra: f64, token: f64) {
        let n = proposal.tokens.len();
        self.stats.count(n, n_right);
        if proposal.is_judged && token > 0.0 {
            let worth = (extra + proposal.seconds) / token;
            self.judge.learn(proposal.source, n, n_right, worth);
        }
    }
}

impl Draft {
    /// The tokens that the draft model would say.
    fn generate(
        &mut self,
        before: &[u32],
        pending: &[u32],
        n: usize,
    ) -> Result<Proposal, EngineError> {
        let begin = Instant::now();
        self.session.feed(&[before, pending].concat())?;
        let options = GenerateOptions {
            max_tokens: n,
            sampling: self.sampling,
            ignore_end: true,
            max_chain: n as u32,
            speculation: Speculation::off(),
            ..GenerateOptions::default()
        };
        let generation = self.session.generate(options)?;
        let tokens = generation.map(|token| token.map(|token| token.id));
        let tokens: Vec<u32> = tokens.collect::<Result<_, _>>()?;
        let seconds = begin.elapsed().as_secs_f64();
        let of_one = seconds / n as f64;
        self.seconds = match self.seconds {
            0.0 => of_one,
            before => before + 0.2 * (of_one - before),
        };
        Ok(Proposal {
            tokens,
            source: Source::Model,
            is_judged: true,
            seconds,
        })
    }
}
