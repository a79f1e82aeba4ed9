//! The threads: started once, fed with jobs, asleep when there are none.
//!
//! The caller is part 0 of every job; each worker is one of the others. A job is published by counting
//! up `epoch`, which idle workers watch, at first spinning, after two milliseconds asleep. The caller
//! returns when `running` is 0 again. A part that panics breaks the barrier, so that the others leave
//! the job too, and the caller gets the panic's message.

use std::any::Any;
use std::cell::UnsafeCell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use crate::barrier::{Broken, Line, Spinner};
use crate::part::{Own, Part, Team};

/// How long an idle worker spins before it sleeps.
const IDLE: Duration = Duration::from_millis(2);

/// What all threads do together.
type Job<'a> = &'a (dyn Fn(&mut Part) + Sync + 'a);

/// What caller and workers share.
struct Shared {
    team: Team,
    /// The present job; written by the caller while no worker runs.
    job: UnsafeCell<Option<Job<'static>>>,
    /// Counts jobs.
    epoch: Line<AtomicUsize>,
    /// Workers that have not ended the present job.
    running: Line<AtomicUsize>,
    /// Whether each worker sleeps, or is about to.
    asleep: Vec<Line<AtomicBool>>,
    /// Why the present job failed.
    failure: Mutex<Option<String>>,
    shutdown: AtomicBool,
}

// SAFETY: `job` is the only field that is not `Sync` by itself. The caller writes it before it counts up
// `epoch`, workers read it after they have seen that, and the caller writes again only after `running`
// is back at 0.
unsafe impl Sync for Shared {}
// SAFETY: as above; a job may be called from any thread, for it is `Sync`.
unsafe impl Send for Shared {}

impl Shared {
    /// Does one part and notes a panic.
    fn run_part(&self, job: Job, index: usize, own: &mut Own) {
        let mut part = Part::new(index, &self.team, own);
        let result = catch_unwind(AssertUnwindSafe(|| job(&mut part)));
        let Err(panic) = result else { return };
        if !panic.is::<Broken>() {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert_with(|| message(&*panic));
        }
        self.team.barrier.break_up();
    }

    /// A worker's life.
    fn work(&self, index: usize) {
        let mut own = Own::default();
        let mut seen = 0;
        while self.next_epoch(&mut seen, index) {
            // SAFETY: `epoch` was counted up after the job was written; see `Sync` above.
            if let Some(job) = unsafe { *self.job.get() } {
                self.run_part(job, index, &mut own);
            }
            self.running.0.fetch_sub(1, Ordering::Release);
        }
    }

    /// Waits for the job after `seen`; false when there will be none.
    fn next_epoch(&self, seen: &mut usize, index: usize) -> bool {
        let mut spinner = Spinner::default();
        let mut idle_since = None;
        while self.epoch.0.load(Ordering::Acquire) == *seen {
            spinner.spin();
            if !spinner.has_yielded() {
                continue;
            }
            if idle_since.get_or_insert_with(Instant::now).elapsed() > IDLE {
                self.sleep(*seen, index);
            }
        }
        *seen = self.epoch.0.load(Ordering::Acquire);
        !self.shutdown.load(Ordering::Acquire)
    }

    /// Sleeps until there is a job after `seen`. The caller counts up `epoch` and then looks at
    /// `asleep`; the worker sets `asleep` and then looks at `epoch`: one of them sees the other.
    fn sleep(&self, seen: usize, index: usize) {
        let asleep = &self.asleep[index].0;
        asleep.store(true, Ordering::SeqCst);
        while self.epoch.0.load(Ordering::SeqCst) == seen {
            std::thread::park();
        }
        asleep.store(false, Ordering::SeqCst);
    }
}

/// The threads of a device.
pub(crate) struct ThreadPool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    own: Own,
}

impl ThreadPool {
    /// Starts `n_threads - 1` workers; the caller's thread is the other one.
    pub fn new(n_threads: usize) -> io::Result<ThreadPool> {
        let shared = Arc::new(Shared {
            team: Team::new(n_threads),
            job: UnsafeCell::new(None),
            epoch: Line::default(),
            running: Line::default(),
            asleep: (0..n_threads).map(|_| Line::default()).collect(),
            failure: Mutex::new(None),
            shutdown: AtomicBool::new(false),
        });
        let mut pool = ThreadPool {
            shared,
            workers: Vec::with_capacity(n_threads - 1),
            own: Own::default(),
        };
        for index in 1..n_threads {
            let shared = Arc::clone(&pool.shared);
            let builder = std::thread::Builder::new().name(format!("akunu-{index}"));
            pool.workers
                .push(builder.spawn(move || shared.work(index))?);
        }
        Ok(pool)
    }

    /// Number of threads, the caller's included.
    pub fn n_threads(&self) -> usize {
        self.shared.team.len()
    }

    /// Runs a job in all threads and waits for it; the error is the message of a panic.
    pub fn run(&mut self, job: Job) -> Result<(), String> {
        let shared = &*self.shared;
        shared.team.barrier.mend();
        // SAFETY: only the lifetime changes. No worker uses the job after `running` is back at 0, which
        // is awaited below, and the next use of the field overwrites it.
        let job: Job<'static> = unsafe { std::mem::transmute::<Job, Job<'static>>(job) };
        // SAFETY: no worker runs; see `Sync` of `Shared`.
        unsafe { *shared.job.get() = Some(job) };
        shared
            .running
            .0
            .store(self.workers.len(), Ordering::Relaxed);
        self.wake();
        shared.run_part(job, 0, &mut self.own);
        let mut spinner = Spinner::default();
        while shared.running.0.load(Ordering::Acquire) != 0 {
            spinner.spin();
        }
        let mut failure = shared
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        failure.take().map_or(Ok(()), Err)
    }

    /// Starts a new epoch.
    fn wake(&self) {
        self.shared.epoch.0.fetch_add(1, Ordering::SeqCst);
        for (worker, asleep) in self.workers.iter().zip(&self.shared.asleep[1..]) {
            if asleep.0.load(Ordering::SeqCst) {
                Thread::unpark(worker.thread());
            }
        }
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.shared.shutdown.store(true, Ordering::Release);
        self.wake();
        for worker in self.workers.drain(..) {
            // A worker catches every panic of its jobs, so there is nothing to report.
            let _ = worker.join();
        }
    }
}

/// The text of a panic.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a kernel panicked".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lost parts, a barrier that lets a thread through early, or a stale job would change the sums.
    #[test]
    fn every_part_runs_and_barriers_hold() {
        for n_threads in [1, 2, 3, 5] {
            let mut pool = ThreadPool::new(n_threads).unwrap();
            for round in 0..200 {
                let slots: Vec<AtomicUsize> = (0..n_threads).map(|_| AtomicUsize::new(0)).collect();
                let wrong = AtomicUsize::new(0);
                let job = |part: &mut Part| {
                    slots[part.index].store(round + part.index, Ordering::Relaxed);
                    part.wait();
                    let sum: usize = slots.iter().map(|s| s.load(Ordering::Relaxed)).sum();
                    let expected = round * n_threads + n_threads * (n_threads - 1) / 2;
                    wrong.fetch_add(usize::from(sum != expected), Ordering::Relaxed);
                    part.wait();
                    slots[part.index].store(0, Ordering::Relaxed);
                };
                pool.run(&job).unwrap();
                assert_eq!(wrong.load(Ordering::Relaxed), 0);
            }
        }
    }

    /// Without the broken barrier the other parts would wait for ever.
    #[test]
    fn a_panic_in_one_part_ends_the_job_and_the_pool_goes_on() {
        let mut pool = ThreadPool::new(3).unwrap();
        for guilty in 0..3 {
            let job = |part: &mut Part| {
                assert!(part.index != guilty, "part {guilty} fails");
                part.wait();
            };
            let error = pool.run(&job).unwrap_err();
            assert!(error.contains("fails"), "{error}");
            pool.run(&|part| part.wait()).unwrap();
        }
    }

    /// An outbox that is overwritten while others read it would change the sums.
    #[test]
    fn what_is_posted_is_read_by_all() {
        let mut pool = ThreadPool::new(3).unwrap();
        let wrong = AtomicUsize::new(0);
        let job = |part: &mut Part| {
            for round in 0..300 {
                let value = (round * 10 + part.index) as f32;
                part.post(1 + round).0[round] = value;
                part.wait();
                let sum: f32 = (0..3).map(|n| part.posted(n, 1 + round)[round]).sum();
                let is_wrong = sum != (3 * round * 10 + 3) as f32;
                wrong.fetch_add(usize::from(is_wrong), Ordering::Relaxed);
            }
        };
        pool.run(&job).unwrap();
        assert_eq!(wrong.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn sleeping_workers_are_woken() {
        let mut pool = ThreadPool::new(2).unwrap();
        for _ in 0..3 {
            std::thread::sleep(3 * IDLE);
            let runs = AtomicUsize::new(0);
            pool.run(&|_| {
                runs.fetch_add(1, Ordering::Relaxed);
            })
            .unwrap();
            assert_eq!(runs.load(Ordering::Relaxed), 2);
        }
    }
}
