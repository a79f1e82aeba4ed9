//! Something that the threads of one process share.
//!
//! A lock that another thread holds during `fork` stays locked in the child for ever, because that thread is not there. A child
//! that waits for such a lock panics with a sentence that says so, instead of waiting for ever.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

/// How long a thread may take to write down that it has the lock.
const GRACE: Duration = Duration::from_secs(1);

/// A lock that knows which process holds it.
pub(crate) struct Shared<T> {
    value: Mutex<T>,
    /// The process that took it last.
    holder: AtomicU32,
}

impl<T> Shared<T> {
    pub fn new(value: T) -> Shared<T> {
        Shared {
            value: Mutex::new(value),
            holder: AtomicU32::new(std::process::id()),
        }
    }

    /// Waits until nobody else has it.
    ///
    /// # Panics
    /// In a forked child, if a thread of the parent had it during the fork.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let process = std::process::id();
        let guard = match self.value.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => self.wait(process),
        };
        self.holder.store(process, Ordering::Relaxed);
        guard
    }

    fn wait(&self, process: u32) -> MutexGuard<'_, T> {
        let begin = Instant::now();
        while self.holder.load(Ordering::Relaxed) != process {
            match self.value.try_lock() {
                Ok(guard) => return guard,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) if begin.elapsed() < GRACE => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(TryLockError::WouldBlock) => panic!(
                    "another thread was using this model when the process was forked, so that the child cannot: \
                     fork while no answer is computed, or start the child afresh (`spawn`)"
                ),
            }
        }
        self.value
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_wait_for_each_other() {
        let shared = Shared::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        *shared.lock() += 1;
                    }
                });
            }
        });
        assert_eq!(*shared.lock(), 4000);
    }

    /// A lock that a process has which is not this one will never be given back here.
    #[test]
    fn a_lock_of_another_process_is_an_error_and_not_a_wait() {
        let shared = Shared::new(());
        let held = shared.lock();
        shared
            .holder
            .store(std::process::id() + 1, Ordering::Relaxed);
        let waited = std::thread::scope(|scope| scope.spawn(|| drop(shared.lock())).join());
        let panic = waited.expect_err("it does not wait");
        let text = panic.downcast_ref::<&str>().expect("a sentence");
        assert!(text.contains("forked"), "{text}");
        drop(held);
        drop(shared.lock());
    }
}
