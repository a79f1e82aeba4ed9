//! A barrier for threads that meet every few microseconds.
//!
//! The last thread to arrive starts a new round, which the others wait to see.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::gate::{Gate, Line};

/// How long a thread waits awake. Parts of a dispatch seldom differ by more, unless a thread does not
/// get a core.
const PATIENCE: Duration = Duration::from_micros(200);

/// A barrier of a fixed number of threads.
pub(crate) struct Barrier {
    n_threads: usize,
    arrived: Line<AtomicUsize>,
    round: Gate,
    broken: AtomicBool,
}

/// What a thread unwinds with when another one has failed.
pub(crate) struct Broken;

impl Barrier {
    pub fn new(n_threads: usize) -> Barrier {
        Barrier {
            n_threads,
            arrived: Line::default(),
            round: Gate::default(),
            broken: AtomicBool::new(false),
        }
    }

    /// Returns when all threads have called it. Unwinds with [`Broken`] if one has failed.
    pub fn wait(&self) {
        if self.n_threads == 1 {
            return;
        }
        let round = self.round.value();
        if self.arrived.0.fetch_add(1, Ordering::AcqRel) + 1 == self.n_threads {
            self.arrived.0.store(0, Ordering::Relaxed);
            self.round.advance();
        } else if !self.round.wait(round, PATIENCE, &self.broken) {
            std::panic::resume_unwind(Box::new(Broken));
        }
    }

    /// Lets all waiting threads, and those to come, unwind.
    pub fn break_up(&self) {
        self.broken.store(true, Ordering::SeqCst);
        self.round.wake();
    }

    /// Makes it whole again. No thread may be waiting.
    pub fn mend(&self) {
        self.arrived.0.store(0, Ordering::Relaxed);
        self.broken.store(false, Ordering::Relaxed);
    }
}
