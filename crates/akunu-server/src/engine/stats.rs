//! What an engine counts: read by `/metrics` while it works.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use akunu::Speculated;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

/// Upper bounds of the buckets of a histogram, in seconds.
const BOUNDS: [f64; 12] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// The counters of one model.
#[derive(Debug)]
pub(crate) struct Stats {
    pub requests: Counter,
    pub given_up: Counter,
    pub failures: Counter,
    pub prompt_tokens: Counter,
    pub cached_tokens: Counter,
    pub generated_tokens: Counter,
    pub guessed_tokens: Counter,
    pub right_guesses: Counter,
    pub steps: Counter,
    pub running: Gauge,
    pub waiting: Gauge,
    /// Pages of keys and values that sequences have.
    pub pages: Gauge,
    /// Share of the tokens that all sequences could hold, 0 to 1.
    pub cache_use: Gauge<f64, AtomicU64>,
    /// Tokens that all sequences can hold together.
    most_tokens: f64,
    pub first: Histogram,
    pub gap: Histogram,
}

/// What an engine is busy with after a step.
pub(crate) struct Load {
    pub running: usize,
    pub waiting: usize,
    pub pages: u32,
    pub held_tokens: usize,
}

impl Stats {
    pub fn new(sequences: u32, context: u32) -> Stats {
        Stats {
            requests: Counter::default(),
            given_up: Counter::default(),
            failures: Counter::default(),
            prompt_tokens: Counter::default(),
            cached_tokens: Counter::default(),
            generated_tokens: Counter::default(),
            guessed_tokens: Counter::default(),
            right_guesses: Counter::default(),
            steps: Counter::default(),
            running: Gauge::default(),
            waiting: Gauge::default(),
            pages: Gauge::default(),
            cache_use: Gauge::default(),
            most_tokens: f64::from(sequences) * f64::from(context),
            first: Histogram::new(BOUNDS),
            gap: Histogram::new(BOUNDS),
        }
    }

    pub fn asked(&self, choices: usize) {
        self.requests.inc_by(choices as u64);
    }

    pub fn gave_up(&self, choices: usize) {
        self.given_up.inc_by(choices as u64);
    }

    pub fn failed(&self) {
        self.failures.inc();
    }

    pub fn began(&self, prompt: usize, cached: usize) {
        self.prompt_tokens.inc_by(prompt as u64);
        self.cached_tokens.inc_by(cached as u64);
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

    pub fn stepped(&self, now: Load) {
        self.steps.inc();
        self.running.set(now.running as i64);
        self.waiting.set(now.waiting as i64);
        self.pages.set(now.pages.into());
        let share = now.held_tokens as f64 / self.most_tokens.max(1.0);
        self.cache_use.set(share);
    }
}
