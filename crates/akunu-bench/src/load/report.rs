//! What a load showed.

use super::request::Times;
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;

/// The figures.
pub struct Report {
    n_answered: usize,
    n_failed: usize,
    took: Duration,
    prompt_tokens: u64,
    tokens: u64,
    /// From a request to its first token.
    pub first: Percentiles,
    /// Between a token and the next.
    pub gap: Percentiles,
}

/// Times that this share of all stays below, in milliseconds.
pub struct Percentiles {
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
}

impl Report {
    pub fn of(done: &[Result<Times, String>], took: Duration) -> Report {
        let answered: Vec<&Times> = done.iter().flatten().collect();
        Report {
            n_answered: answered.len(),
            n_failed: done.len() - answered.len(),
            took,
            prompt_tokens: answered.iter().map(|times| times.n_prompt).sum(),
            tokens: answered.iter().map(|times| times.n_tokens).sum(),
            first: Percentiles::of(answered.iter().map(|times| times.first)),
            gap: Percentiles::of(answered.iter().flat_map(|times| times.gaps.iter().copied())),
        }
    }

    fn rate(&self) -> f64 {
        self.tokens as f64 / self.took.as_secs_f64().max(1e-9)
    }

    pub fn json(&self) -> Value {
        let times = |all: &Percentiles| json!({"p50": all.p50, "p90": all.p90, "p99": all.p99});
        json!({
            "answered": self.n_answered,
            "failed": self.n_failed,
            "seconds": self.took.as_secs_f64(),
            "prompt_tokens": self.prompt_tokens,
            "tokens": self.tokens,
            "tokens_per_second": self.rate(),
            "first_token_ms": times(&self.first),
            "gap_ms": times(&self.gap),
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let seconds = self.took.as_secs_f64();
        writeln!(
            f,
            "answered     {} of {} in {seconds:.1} s",
            self.n_answered,
            self.n_answered + self.n_failed
        )?;
        writeln!(
            f,
            "tokens       {} of prompts, {} of answers: {:.1} a second",
            self.prompt_tokens,
            self.tokens,
            self.rate()
        )?;
        writeln!(f, "                  50 %       90 %       99 %")?;
        for (name, times) in [("first token", &self.first), ("token gap  ", &self.gap)] {
            let Percentiles { p50, p90, p99 } = times;
            writeln!(f, "{name}  {p50:8.1} ms{p90:8.1} ms{p99:8.1} ms")?;
        }
        Ok(())
    }
}

impl Percentiles {
    fn of(times: impl Iterator<Item = Duration>) -> Percentiles {
        let mut all: Vec<f64> = times.map(|time| time.as_secs_f64() * 1e3).collect();
        all.sort_by(f64::total_cmp);
        let share = |share: f64| {
            let at = (share * all.len() as f64).ceil() as usize;
            all.get(at.saturating_sub(1)).copied().unwrap_or(0.0)
        };
        Percentiles {
            p50: share(0.5),
            p90: share(0.9),
            p99: share(0.99),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when a percentile is off by one: 50 of 100 times are at most 50 ms.
    #[test]
    fn percentiles_are_the_smallest_times_that_enough_stay_below() {
        let times = (1..=100).map(Duration::from_millis);
        let found = Percentiles::of(times);
        let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
        assert!(near(found.p50, 50.0) && near(found.p90, 90.0) && near(found.p99, 99.0));
        let none = Percentiles::of(std::iter::empty());
        assert!(near(none.p99, 0.0));
    }
}
