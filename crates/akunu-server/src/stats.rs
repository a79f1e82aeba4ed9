//! Requests to a model and its work: counted while it works, read by `/metrics`, kept when it is unloaded.

mod http;
mod task;

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use akunu::Speculated;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

pub(crate) use self::http::HttpRequests;
pub(crate) use self::task::Task;

/// Upper bounds of the buckets of a token's time, in seconds.
const TOKEN_BOUNDS: [f64; 12] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// The same of a whole answer.
const ANSWER_BOUNDS: [f64; 14] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0, 600.0,
];

/// The kinds of requests to a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Answers, and vectors of texts.
    Answers,
    /// Vectors of texts, or rankings.
    Texts,
    /// Transcripts of recordings.
    Recordings,
}

/// The counters of one model. Those of other kinds of models stay zero.
#[derive(Debug)]
pub(crate) struct Stats {
    /// Known once it has been loaded.
    pub kind: OnceLock<Kind>,
    pub requests: Counter,
    pub given_up: Counter,
    pub failures: Counter,
    pub running: Gauge,
    pub waiting: Gauge,
    /// From a request to the end of its answer.
    pub whole: Histogram,
    pub prompt_tokens: Counter,
    pub cached_tokens: Counter,
    pub generated_tokens: Counter,
    pub guessed_tokens: Counter,
    pub right_guesses: Counter,
    pub steps: Counter,
    /// Pages of keys and values that sequences have.
    pub pages: Gauge,
    /// Share of the tokens that all sequences could hold, 0 to 1.
    pub cache_use: Gauge<f64, AtomicU64>,
    pub first: Histogram,
    pub gap: Histogram,
    /// Texts that became vectors, or were ranked.
    pub texts: Counter,
    /// Seconds of recordings that were heard.
    pub heard: Counter<f64, AtomicU64>,
}

impl Default for Stats {
    fn default() -> Stats {
        Stats {
            kind: OnceLock::new(),
            requests: Counter::default(),
            given_up: Counter::default(),
            failures: Counter::default(),
            running: Gauge::default(),
            waiting: Gauge::default(),
            whole: Histogram::new(ANSWER_BOUNDS),
            prompt_tokens: Counter::default(),
            cached_tokens: Counter::default(),
            generated_tokens: Counter::default(),
            guessed_tokens: Counter::default(),
            right_guesses: Counter::default(),
            steps: Counter::default(),
            pages: Gauge::default(),
            cache_use: Gauge::default(),
            first: Histogram::new(TOKEN_BOUNDS),
            gap: Histogram::new(TOKEN_BOUNDS),
            texts: Counter::default(),
            heard: Counter::default(),
        }
    }
}

impl Stats {
    /// A prompt, of which so many tokens need not be read.
    pub fn began(&self, prompt: usize, cached: usize) {
        self.prompt_tokens.inc_by(prompt as u64);
        self.cached_tokens.inc_by(cached as u64);
    }

    /// Texts with so many tokens together.
    pub fn read(&self, texts: usize, tokens: usize) {
        self.texts.inc_by(texts as u64);
        self.prompt_tokens.inc_by(tokens as u64);
    }

    pub fn first_token(&self, after: Duration) {
        self.generated_tokens.inc();
        self.first.observe(after.as_secs_f64());
    }

    pub fn next_token(&self, after: Duration) {
        self.generated_tokens.inc();
        self.gap.observe(after.as_secs_f64());
    }

    /// How the guesses of an answer went.
    pub fn guessed(&self, speculated: &Speculated) {
        let sum = |by_place: &[u32]| by_place.iter().map(|n| u64::from(*n)).sum();
        self.guessed_tokens.inc_by(sum(&speculated.drafted));
        self.right_guesses.inc_by(sum(&speculated.accepted));
    }

    /// The memory that sequences hold after a step: pages, and a share of all tokens that they could.
    pub fn stepped(&self, pages: u32, share: f64) {
        self.steps.inc();
        self.pages.set(pages.into());
        self.cache_use.set(share);
    }
}
