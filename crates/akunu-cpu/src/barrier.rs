//! A barrier for threads that meet every few microseconds.
//!
//! The last thread to arrive starts a new round, which the others wait to see.
//!
//! They wait awake: if every thread has a core of its own, all arrive within microseconds, and going to sleep would cost
//! more than any wait. Where threads have to share cores, [`crate::crowd`] takes some of them out.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::gate::{Gate, Line, Patience};

/// A wait of more than some microseconds means that a thread has lost its core, and may be waiting for ours.
const PATIENCE: Patience = Patience {
    spin: Duration::from_micros(30),
    offer: Duration::from_millis(5),
};

/// A barrier for the threads of a team.
pub(crate) struct Barrier {
    /// Threads that meet; changed while none is waiting.
    n_threads: AtomicUsize,
    arrived: Line<AtomicUsize>,
    round: Gate,
    broken: AtomicBool,
}

/// What a thread unwinds with when another one has failed.
pub(crate) struct Broken;

impl Barrier {
    pub fn new(n_threads: usize) -> Barrier {
        Barrier {
            n_threads: AtomicUsize::new(n_threads),
            arrived: Line::default(),
            round: Gate::default(),
            broken: AtomicBool::new(false),
        }
    }

    /// Returns when all threads have called it. Unwinds with [`Broken`] if one has failed.
    pub fn wait(&self) {
        let n_threads = self.n_threads.load(Ordering::Relaxed);
        if n_threads == 1 {
            return;
        }
        // Read before `broken` is looked at: a barrier that breaks after that starts another round.
        let round = self.round.value();
        self.check();
        if self.arrived.0.fetch_add(1, Ordering::AcqRel) + 1 == n_threads {
            self.arrived.0.store(0, Ordering::Relaxed);
            self.round.advance();
        } else {
            self.round.wait(round, PATIENCE);
        }
        self.check();
    }

    /// Unwinds if a thread has failed.
    fn check(&self) {
        if self.broken.load(Ordering::Acquire) {
            std::panic::resume_unwind(Box::new(Broken));
        }
    }

    /// Lets all waiting threads, and those to come, unwind.
    pub fn break_up(&self) {
        self.broken.store(true, Ordering::SeqCst);
        self.round.advance();
    }

    /// Makes it whole again, for this many threads. None may be waiting.
    pub fn mend(&self, n_threads: usize) {
        self.n_threads.store(n_threads, Ordering::Relaxed);
        self.arrived.0.store(0, Ordering::Relaxed);
        self.broken.store(false, Ordering::Relaxed);
    }
}
