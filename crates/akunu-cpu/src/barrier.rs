//! A barrier for threads that meet every few microseconds: it spins.
//!
//! The last thread to arrive starts a new round, which the others wait to see. Where there are more
//! threads than free cores, waiting must not keep the awaited one from running, so a thread that has
//! spun for a while yields.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Spins before a waiting thread yields: some microseconds, longer than parts of a dispatch differ. A
/// yield costs about one where nobody else wants the core, and saves milliseconds where somebody does.
const SPINS: u32 = 256;

/// One word in a cache line (and its prefetched neighbour) of its own.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Line<T>(pub T);

/// A barrier of a fixed number of threads.
pub(crate) struct Barrier {
    n_threads: usize,
    arrived: Line<AtomicUsize>,
    round: Line<AtomicUsize>,
    broken: Line<AtomicBool>,
}

/// What a thread unwinds with when another one has failed.
pub(crate) struct Broken;

impl Barrier {
    pub fn new(n_threads: usize) -> Barrier {
        Barrier {
            n_threads,
            arrived: Line::default(),
            round: Line::default(),
            broken: Line::default(),
        }
    }

    /// Returns when all threads have called it. Unwinds with [`Broken`] if one has failed.
    pub fn wait(&self) {
        if self.n_threads == 1 {
            return;
        }
        let round = self.round.0.load(Ordering::Relaxed);
        if self.arrived.0.fetch_add(1, Ordering::AcqRel) + 1 == self.n_threads {
            self.arrived.0.store(0, Ordering::Relaxed);
            self.round.0.store(round.wrapping_add(1), Ordering::Release);
            return;
        }
        let mut spinner = Spinner::default();
        while self.round.0.load(Ordering::Acquire) == round {
            if spinner.has_yielded() && self.broken.0.load(Ordering::Relaxed) {
                std::panic::resume_unwind(Box::new(Broken));
            }
            spinner.spin();
        }
    }

    /// Lets all waiting threads, and those to come, unwind.
    pub fn break_up(&self) {
        self.broken.0.store(true, Ordering::Relaxed);
    }

    /// Makes it whole again. No thread may be waiting.
    pub fn mend(&self) {
        self.arrived.0.store(0, Ordering::Relaxed);
        self.broken.0.store(false, Ordering::Relaxed);
    }
}

/// Waits a little, longer after many times.
#[derive(Default)]
pub(crate) struct Spinner(u32);

impl Spinner {
    pub fn spin(&mut self) {
        if self.0 < SPINS {
            self.0 += 1;
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }

    /// Whether it has waited for long.
    pub fn has_yielded(&self) -> bool {
        self.0 >= SPINS
    }
}
