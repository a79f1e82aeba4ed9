//! A barrier for threads that meet every few microseconds.
//!
//! The last thread to arrive starts a new round, which the others wait to see.
//!
//! How long they wait awake depends on the machine. If every thread has a core of its own, all arrive within
//! microseconds, and going to sleep would cost more than any wait. If other programs want the cores too, the awaited
//! thread may be without one, and gets one sooner if those that wait let go of theirs ([`crate::crowd`] tells which).

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::gate::{Gate, Line, Patience};

/// Every thread has a core: a wait this long means that one was stopped after all.
const ALONE: Patience = Patience {
    spin: Duration::from_micros(500),
    offer: Duration::from_millis(2),
};

/// Others want the cores: parts of a dispatch seldom differ by more, unless a thread has lost its core.
const CROWDED: Patience = Patience {
    spin: Duration::from_micros(20),
    offer: Duration::from_micros(60),
};

/// A barrier of a fixed number of threads.
pub(crate) struct Barrier {
    n_threads: usize,
    arrived: Line<AtomicUsize>,
    round: Gate,
    broken: AtomicBool,
    crowded: AtomicBool,
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
            crowded: AtomicBool::new(false),
        }
    }

    /// Returns when all threads have called it. Unwinds with [`Broken`] if one has failed.
    pub fn wait(&self) {
        if self.n_threads == 1 {
            return;
        }
        // Read before `broken` is looked at: a barrier that breaks after that starts another round.
        let round = self.round.value();
        self.check();
        if self.arrived.0.fetch_add(1, Ordering::AcqRel) + 1 == self.n_threads {
            self.arrived.0.store(0, Ordering::Relaxed);
            self.round.advance();
        } else {
            let crowded = self.crowded.load(Ordering::Relaxed);
            self.round
                .wait(round, if crowded { CROWDED } else { ALONE });
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

    /// Makes it whole again. No thread may be waiting.
    pub fn mend(&self) {
        self.arrived.0.store(0, Ordering::Relaxed);
        self.broken.store(false, Ordering::Relaxed);
    }

    /// Says whether other programs want the cores of these threads.
    pub fn set_crowded(&self, crowded: bool) {
        self.crowded.store(crowded, Ordering::Relaxed);
    }
}
