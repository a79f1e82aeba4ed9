//! A number of clients who ask all requests of a list, each the next one as soon as it has read its answer.

use super::request::{Request, Times};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// What came of it.
pub struct Burst {
    pub answers: Vec<Result<Times, String>>,
    pub took: Duration,
    /// Seconds of computing of the server's process, where somebody knows.
    pub cpu_seconds: Option<f64>,
}

/// Asks all requests.
pub fn burst(requests: &[Request], n_clients: u32) -> Burst {
    let next = AtomicUsize::new(0);
    let answers = Mutex::new(Vec::new());
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..n_clients {
            scope.spawn(|| {
                while let Some(request) = requests.get(next.fetch_add(1, Relaxed)) {
                    let answer = request.send();
                    if let Ok(mut answers) = answers.lock() {
                        answers.push(answer);
                    }
                }
            });
        }
    });
    Burst {
        took: begin.elapsed(),
        answers: answers.into_inner().unwrap_or_default(),
        cpu_seconds: None,
    }
}

impl Burst {
    fn n_tokens(&self) -> u64 {
        self.answers.iter().flatten().map(|one| one.n_tokens).sum()
    }

    /// Tokens of all answers in a second.
    pub fn tokens_per_second(&self) -> f64 {
        self.n_tokens() as f64 / self.took.as_secs_f64().max(1e-9)
    }

    /// What the server computed, prompts included, for each token of an answer.
    pub fn cpu_ms_of_a_token(&self) -> Option<f64> {
        Some(1e3 * self.cpu_seconds? / self.n_tokens().max(1) as f64)
    }
}
