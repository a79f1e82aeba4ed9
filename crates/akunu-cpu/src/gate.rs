//! A number that threads wait for to change.
//!
//! Threads that meet every few microseconds must not be put to sleep, which costs as much again; threads
//! that wait for long must not burn a core that somebody else wants, least of all the awaited one. So a
//! waiting thread spins at first, then yields, and at last sleeps.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Spins before a waiting thread yields: some microseconds, longer than parts of a dispatch differ.
const SPINS: u32 = 256;

/// One value in a cache line (and its prefetched neighbour) of its own.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Line<T>(pub T);

/// The number.
#[derive(Default)]
pub(crate) struct Gate {
    value: Line<AtomicUsize>,
    /// Threads that sleep, or are about to.
    sleepers: Line<AtomicUsize>,
    mutex: Mutex<()>,
    changed: Condvar,
}

impl Gate {
    /// The number as it is now.
    pub fn value(&self) -> usize {
        self.value.0.load(Ordering::Acquire)
    }

    /// Changes it and lets the waiting threads go on. What was written before is seen by them.
    pub fn advance(&self) {
        self.value.0.fetch_add(1, Ordering::SeqCst);
        self.wake();
    }

    /// Wakes those that sleep, to look at the number or at what else they wait for.
    ///
    /// This thread has changed something and then looks at `sleepers`; a thread that goes to sleep
    /// counts itself there and then looks whether something has changed: one of them sees the other.
    pub fn wake(&self) {
        if self.sleepers.0.load(Ordering::SeqCst) > 0 {
            drop(self.mutex.lock().unwrap_or_else(PoisonError::into_inner));
            self.changed.notify_all();
        }
    }

    /// Waits until the number is not `old` any more, or `broken` is set; true if it changed. Sleeps when
    /// `patience` is over.
    pub fn wait(&self, old: usize, patience: Duration, broken: &AtomicBool) -> bool {
        let is_over = || self.value() != old || broken.load(Ordering::Relaxed);
        for _ in 0..SPINS {
            if is_over() {
                return self.value() != old;
            }
            std::hint::spin_loop();
        }
        let begin = Instant::now();
        while !is_over() {
            if begin.elapsed() > patience {
                self.sleep(old, broken);
                break;
            }
            std::thread::yield_now();
        }
        self.value() != old
    }

    fn sleep(&self, old: usize, broken: &AtomicBool) {
        self.sleepers.0.fetch_add(1, Ordering::SeqCst);
        let is_waiting = |_: &mut ()| {
            self.value.0.load(Ordering::SeqCst) == old && !broken.load(Ordering::SeqCst)
        };
        let guard = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
        let guard = self.changed.wait_while(guard, is_waiting);
        drop(guard.unwrap_or_else(PoisonError::into_inner));
        self.sleepers.0.fetch_sub(1, Ordering::SeqCst);
    }
}
