//! What an engine counts: read by `/metrics` while it works.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use akunu::Speculated;

/// Upper bounds of the classes of a histogram, in seconds.
pub(crate) const BOUNDS: [f64; 12] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// How often something took how long.
#[derive(Default)]
pub(crate) struct Histogram {
    /// One for each bound: how often it took at most that long, and longer than the bound before.
    classes: [AtomicU64; BOUNDS.len()],
    count: AtomicU64,
    microseconds: AtomicU64,
}

impl Histogram {
    fn add(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        if let Some(class) = BOUNDS.iter().position(|bound| seconds <= *bound) {
            self.classes[class].fetch_add(1, Relaxed);
        }
        self.count.fetch_add(1, Relaxed);
        let microseconds = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.microseconds.fetch_add(microseconds, Relaxed);
    }

    /// How often it took at most as long as each bound.
    pub fn up_to(&self) -> [u64; BOUNDS.len()] {
        let mut sum = 0;
        std::array::from_fn(|class| {
            sum += self.classes[class].load(Relaxed);
            sum
        })
    }

    pub fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    pub fn seconds(&self) -> f64 {
        self.microseconds.load(Relaxed) as f64 / 1e6
    }
}

/// The counters of one model.
#[derive(Default)]
pub(crate) struct Stats {
    pub requests: AtomicU64,
    pub given_up: AtomicU64,
    pub failures: AtomicU64,
    pub prompt_tokens: AtomicU64,
    pub cached_tokens: AtomicU64,
    pub generated_tokens: AtomicU64,
    pub guessed_tokens: AtomicU64,
    pub right_guesses: AtomicU64,
    pub steps: AtomicU64,
    pub running: AtomicU64,
    pub waiting: AtomicU64,
    /// Pages of keys and values that sequences have.
    pub pages: AtomicU64,
    /// Tokens that all sequences hold together.
    pub held_tokens: AtomicU64,
    /// Tokens that they can hold.
    pub most_tokens: u64,
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
            most_tokens: u64::from(sequences) * u64::from(context),
            ..Stats::default()
        }
    }

    pub fn asked(&self, choices: usize) {
        self.requests.fetch_add(choices as u64, Relaxed);
    }

    pub fn gave_up(&self, choices: usize) {
        self.given_up.fetch_add(choices as u64, Relaxed);
    }

    pub fn failed(&self) {
        self.failures.fetch_add(1, Relaxed);
    }

    pub fn began(&self, prompt: usize, cached: usize) {
        self.prompt_tokens.fetch_add(prompt as u64, Relaxed);
        self.cached_tokens.fetch_add(cached as u64, Relaxed);
    }

    pub fn first_token(&self, after: Duration) {
        self.generated_tokens.fetch_add(1, Relaxed);
        self.first.add(after);
    }

    pub fn next_token(&self, after: Duration) {
        self.generated_tokens.fetch_add(1, Relaxed);
        self.gap.add(after);
    }

    /// How the guesses of an answer went.
    pub fn guessed(&self, speculated: &Speculated) {
        let sum = |by_place: &[u32]| by_place.iter().map(|n| u64::from(*n)).sum();
        self.guessed_tokens
            .fetch_add(sum(&speculated.drafted), Relaxed);
        self.right_guesses
            .fetch_add(sum(&speculated.accepted), Relaxed);
    }

    pub fn stepped(&self, now: Load) {
        self.steps.fetch_add(1, Relaxed);
        self.running.store(now.running as u64, Relaxed);
        self.waiting.store(now.waiting as u64, Relaxed);
        self.pages.store(now.pages.into(), Relaxed);
        self.held_tokens.store(now.held_tokens as u64, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when a class is counted twice or a long time is lost.
    #[test]
    fn a_histogram_counts_up_to_each_bound() {
        let times = Histogram::default();
        for seconds in [0.001, 0.05, 0.2, 100.0] {
            times.add(Duration::from_secs_f64(seconds));
        }
        assert_eq!(times.up_to(), [1, 1, 1, 2, 2, 3, 3, 3, 3, 3, 3, 3]);
        assert_eq!(times.count(), 4);
        assert!((times.seconds() - 100.251).abs() < 1e-4);
    }
}
