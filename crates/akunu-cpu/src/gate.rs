//! A number that threads wait for to change.
//!
//! Threads that meet every few microseconds must not be put to sleep: waking one takes longer than what it waits for.
//! So a waiting thread spins for as long as its [`Patience`] lasts, and only then sleeps in the kernel, on the number
//! itself: the thread that changes the number wakes all sleepers with one call, without a lock.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Looks at the number between two looks at the clock.
const LOOKS: u32 = 32;

/// One value in a cache line (and its prefetched neighbour) of its own.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Line<T>(pub T);

/// How long a thread waits awake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// It does nothing but look.
    pub spin: Duration,
    /// After that, and until this has passed since the beginning, it offers its core to others between two looks.
    pub offer: Duration,
}

/// A number that threads wait for.
#[derive(Default)]
pub(crate) struct Gate {
    value: Line<AtomicU32>,
    /// Threads that sleep, or are about to.
    sleepers: Line<AtomicUsize>,
}

impl Gate {
    /// The number as it is now.
    pub fn value(&self) -> u32 {
        self.value.0.load(Ordering::Acquire)
    }

    /// Changes it and lets the waiting threads go on. What was written before is seen by them.
    pub fn advance(&self) {
        self.value.0.fetch_add(1, Ordering::SeqCst);
        self.wake();
    }

    /// The same with a number of the caller's choice; no other thread may change it.
    pub fn advance_to(&self, value: u32) {
        self.value.0.store(value, Ordering::SeqCst);
        self.wake();
    }

    /// A thread that goes to sleep counts itself first, and the kernel puts it to sleep only if the number is still
    /// the old one: either it is seen here, or it sees the new number.
    fn wake(&self) {
        if self.sleepers.0.load(Ordering::SeqCst) > 0 {
            atomic_wait::wake_all(&self.value.0);
        }
    }

    /// Waits until the number is not `old` any more.
    pub fn wait(&self, old: u32, patience: Patience) {
        if self.changes_within_looks(old) {
            return;
        }
        let begin = Instant::now();
        loop {
            if self.changes_within_looks(old) {
                return;
            }
            let waited = begin.elapsed();
            if waited > patience.offer {
                return self.sleep(old);
            }
            if waited > patience.spin {
                std::thread::yield_now();
            }
        }
    }

    fn changes_within_looks(&self, old: u32) -> bool {
        for _ in 0..LOOKS {
            if self.value() != old {
                return true;
            }
            spin_loop();
        }
        false
    }

    fn sleep(&self, old: u32) {
        self.sleepers.0.fetch_add(1, Ordering::SeqCst);
        while self.value.0.load(Ordering::SeqCst) == old {
            atomic_wait::wait(&self.value.0, old);
        }
        self.sleepers.0.fetch_sub(1, Ordering::SeqCst);
    }
}
