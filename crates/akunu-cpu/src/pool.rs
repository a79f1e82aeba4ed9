//! The threads: started once, fed with jobs, asleep when there are none.
//!
//! The caller is part 0 of every job; each worker is one of the others, as long as the job has so many. A job is
//! published by counting up `epoch`, which idle workers wait for, and is over when the last worker counts up `ended`. A
//! part that panics breaks the barrier, so that the others leave the job too, and the caller gets the panic's message.
//!
//! `fork` copies the memory of a process but only the thread that calls it. The child finds out by its process id that the
//! workers are not there, and starts its own.

use std::any::Any;
use std::cell::UnsafeCell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::barrier::Broken;
use crate::crowd::{Crowd, involuntary_switches};
use crate::gate::{Gate, Line, Patience};
use crate::part::{Own, Part, Team};
use crate::pieces::RING;

/// More threads than any machine has cores.
pub(crate) const MAX_THREADS: usize = 1024;

/// How long an idle worker stays awake, and a caller that has done its part: the next chain of tokens comes within
/// that time while somebody reads the last one's text.
const IDLE: Patience = Patience {
    spin: Duration::from_micros(100),
    offer: Duration::from_millis(2),
};

/// A job's number and how many parts it has, in one number: who sees one sees the other.
#[derive(Clone, Copy)]
struct Epoch(u32);

impl Epoch {
    const PARTS: u32 = MAX_THREADS.next_power_of_two() as u32 * 2;

    fn parts(self) -> usize {
        (self.0 % Self::PARTS) as usize
    }

    /// The next job, of `parts` parts.
    fn next(self, parts: usize) -> Epoch {
        let number = (self.0 / Self::PARTS).wrapping_add(1);
        Epoch(number.wrapping_mul(Self::PARTS) | parts as u32)
    }
}

/// What all threads do together.
type Job<'a> = &'a (dyn Fn(&mut Part) + Sync + 'a);

/// What caller and workers share.
struct Shared {
    team: Team,
    /// The present job; written by the caller while no worker runs.
    job: UnsafeCell<Option<Job<'static>>>,
    /// The present job: how many began before it, and how many parts it has ([`Epoch`]).
    epoch: Gate,
    /// Counts jobs that all workers have ended.
    ended: Gate,
    /// Workers that have not ended the present job.
    running: Line<AtomicUsize>,
    /// Where the generations of the present job's pieces begin; written by the caller while no worker runs.
    generation: AtomicU32,
    /// How often each thread lost its core in the present job.
    switches: Vec<Line<AtomicU64>>,
    /// Why the present job failed.
    failure: Mutex<Option<String>>,
    shutdown: AtomicBool,
}

// SAFETY: `job` is the only field that is not `Sync` by itself. The caller writes it before it counts up
// `epoch`, workers read it after they have seen that, and the caller writes again only after they have
// counted up `ended`.
unsafe impl Sync for Shared {}
// SAFETY: as above; a job may be called from any thread, for it is `Sync`.
unsafe impl Send for Shared {}

impl Shared {
    /// Does one part and notes a panic; gives the generation of its last pieces.
    fn run_part(&self, job: Job, (index, parts): (usize, usize), own: &mut Own) -> u32 {
        let before = involuntary_switches();
        let first = self.generation.load(Ordering::Relaxed);
        let mut part = Part::new((index, parts), &self.team, own, first);
        let result = catch_unwind(AssertUnwindSafe(|| job(&mut part)));
        let last = part.generation();
        let switches = involuntary_switches().saturating_sub(before);
        self.switches[index].0.store(switches, Ordering::Relaxed);
        let Err(panic) = result else { return last };
        if !panic.is::<Broken>() {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert_with(|| message(&*panic));
        }
        self.team.barrier.break_up();
        // The others may be ahead, by no more pieces than fit between two barriers.
        last.wrapping_add(RING as u32)
    }

    /// A worker's life.
    fn work(&self, index: usize) {
        let mut own = Own::default();
        let mut seen = 0;
        loop {
            self.epoch.wait(seen, IDLE);
            seen = self.epoch.value();
            if self.shutdown.load(Ordering::Acquire) {
                return;
            }
            // A worker that has no part may see a job late, or not at all; the caller does not wait for it.
            let parts = Epoch(seen).parts();
            if index >= parts {
                continue;
            }
            // SAFETY: `epoch` was counted up after the job was written; see `Sync` above.
            if let Some(job) = unsafe { *self.job.get() } {
                self.run_part(job, (index, parts), &mut own);
            }
            if self.running.0.fetch_sub(1, Ordering::AcqRel) == 1 {
                self.ended.advance();
            }
        }
    }
}

/// The threads of a device.
pub(crate) struct ThreadPool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    own: Own,
    /// Decides how many threads a job has; `None` for always all.
    crowd: Option<Crowd>,
    /// The process that the workers belong to.
    process: u32,
}

impl ThreadPool {
    /// Starts `n_threads - 1` workers; the caller's thread is the other one.
    pub fn new(n_threads: usize) -> io::Result<ThreadPool> {
        let shared = Arc::new(Shared {
            team: Team::new(n_threads),
            job: UnsafeCell::new(None),
            epoch: Gate::default(),
            ended: Gate::default(),
            running: Line::default(),
            generation: AtomicU32::new(0),
            switches: (0..n_threads).map(|_| Line::default()).collect(),
            failure: Mutex::new(None),
            shutdown: AtomicBool::new(false),
        });
        let mut pool = ThreadPool {
            shared,
            workers: Vec::with_capacity(n_threads - 1),
            own: Own::default(),
            crowd: None,
            process: std::process::id(),
        };
        for index in 1..n_threads {
            let shared = Arc::clone(&pool.shared);
            let builder = std::thread::Builder::new().name(format!("akunu-{index}"));
            pool.workers
                .push(builder.spawn(move || shared.work(index))?);
        }
        Ok(pool)
    }

    /// The same, but jobs leave threads out that other programs take the cores from.
    pub fn yielding(n_threads: usize) -> io::Result<ThreadPool> {
        let mut pool = ThreadPool::new(n_threads)?;
        pool.crowd = Some(Crowd::new(n_threads));
        Ok(pool)
    }

    /// Number of threads, the caller's included.
    pub fn n_threads(&self) -> usize {
        self.shared.team.len()
    }

    /// Starts workers of this process's own, after a fork.
    fn restart(&mut self) -> io::Result<()> {
        let mut own = ThreadPool::new(self.n_threads())?;
        own.crowd = self.crowd.take();
        *self = own;
        Ok(())
    }

    /// Runs a job in all threads and waits for it; the error is the message of a panic.
    pub fn run(&mut self, job: Job) -> Result<(), String> {
        if self.process != std::process::id() {
            self.restart()
                .map_err(|error| format!("cannot start threads after a fork: {error}"))?;
        }
        let shared = &*self.shared;
        let begin = Instant::now();
        let n_parts = (self.crowd.as_ref()).map_or(self.n_threads(), Crowd::active);
        shared.team.barrier.mend(n_parts);
        // SAFETY: only the lifetime changes. No worker uses the job after the last has counted up `ended`,
        // which is awaited below, and the next use of the field overwrites it.
        let job: Job<'static> = unsafe { std::mem::transmute::<Job, Job<'static>>(job) };
        // SAFETY: no worker runs; see `Sync` of `Shared`.
        unsafe { *shared.job.get() = Some(job) };
        let ended = shared.ended.value();
        let n_workers = n_parts - 1;
        shared.running.0.store(n_workers, Ordering::Relaxed);
        let epoch = Epoch(shared.epoch.value()).next(n_parts);
        shared.epoch.advance_to(epoch.0);
        let generation = shared.run_part(job, (0, n_parts), &mut self.own);
        if n_workers > 0 {
            shared.ended.wait(ended, IDLE);
        }
        shared.generation.store(generation, Ordering::Relaxed);
        if let Some(crowd) = &mut self.crowd {
            let switches = shared.switches[..n_parts].iter();
            let switches = switches.map(|switches| switches.0.load(Ordering::Relaxed));
            let now = Instant::now();
            crowd.count(now - begin, now, switches);
        }
        let mut failure = shared
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        failure.take().map_or(Ok(()), Err)
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // Threads of the parent can be neither woken nor joined from here, nor may their handles be given back.
            self.workers.drain(..).for_each(std::mem::forget);
            return;
        }
        self.shared.shutdown.store(true, Ordering::Release);
        let epoch = Epoch(self.shared.epoch.value());
        self.shared.epoch.advance_to(epoch.next(0).0);
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
        for (guilty, delay) in [(0, 0), (1, 0), (2, 0), (0, 5), (2, 5)] {
            let job = |part: &mut Part| {
                if part.index == guilty {
                    // The others sleep by now.
                    std::thread::sleep(Duration::from_millis(delay));
                    panic!("part {guilty} fails");
                }
                part.wait();
            };
            let error = pool.run(&job).unwrap_err();
            assert!(error.contains("fails"), "{error}");
            pool.run(&|part| part.wait()).unwrap();
        }
    }

    /// A piece that is handed out twice or never, or a barrier that is missing where shares are used again, would
    /// change the counts.
    #[test]
    fn every_item_of_every_dispatch_is_taken_once() {
        let mut pool = ThreadPool::new(3).unwrap();
        for _ in 0..20 {
            let done: Vec<AtomicUsize> = (0..3000).map(|_| AtomicUsize::new(0)).collect();
            let job = |part: &mut Part| {
                for dispatch in 0..30 {
                    let mut pieces = part.divide(100);
                    while let Some(piece) = part.take(&mut pieces) {
                        for item in piece {
                            done[100 * dispatch + item].fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    if dispatch % 7 == 0 {
                        part.wait();
                    }
                }
            };
            pool.run(&job).unwrap();
            assert!(done.iter().all(|n| n.load(Ordering::Relaxed) == 1));
        }
    }

    /// A wake-up that is lost would leave the others asleep.
    #[test]
    fn parts_that_sleep_at_a_barrier_are_woken() {
        let mut pool = ThreadPool::new(3).unwrap();
        for late in 0..3 {
            let job = |part: &mut Part| {
                if part.index == late {
                    std::thread::sleep(Duration::from_millis(5));
                }
                part.wait();
            };
            pool.run(&job).unwrap();
        }
    }

    /// A worker that is left out of some jobs and runs one twice, or never again, would change the counts.
    #[test]
    fn a_job_of_fewer_parts_leaves_workers_out() {
        let mut pool = ThreadPool::yielding(4).unwrap();
        for round in 0..300 {
            let crowd = pool.crowd.as_mut().unwrap();
            *crowd = Crowd::of_size(4, 1 + round % 4);
            let runs: Vec<AtomicUsize> = (0..4).map(|_| AtomicUsize::new(0)).collect();
            let job = |part: &mut Part| {
                assert_eq!(part.count, 1 + round % 4);
                runs[part.index].fetch_add(1, Ordering::Relaxed);
                part.wait();
            };
            pool.run(&job).unwrap();
            let runs: Vec<usize> = runs.iter().map(|n| n.load(Ordering::Relaxed)).collect();
            let expected: Vec<usize> = (0..4).map(|n| usize::from(n <= round % 4)).collect();
            assert_eq!(runs, expected);
        }
    }

    /// Without threads of its own the child would wait for ever, for its first job and for the end of its pool.
    #[cfg(unix)]
    #[test]
    fn a_forked_child_has_threads_of_its_own() {
        for n_threads in [2, 4] {
            let mut pool = ThreadPool::new(n_threads).unwrap();
            pool.run(&|part| part.wait()).unwrap();
            // SAFETY: the child runs a job, which allocates (the C library's allocator survives a fork), and exits at once.
            let child = unsafe { libc::fork() };
            if child == 0 {
                let runs = AtomicUsize::new(0);
                let ran = pool.run(&|part| {
                    runs.fetch_add(1, Ordering::Relaxed);
                    part.wait();
                });
                let all = ran.is_ok() && runs.into_inner() == n_threads;
                drop(pool);
                // SAFETY: nothing of the child is needed any more.
                unsafe { libc::_exit(if all { 0 } else { 1 }) };
            }
            assert_eq!(status_of(child), Some(0), "{n_threads} threads");
            pool.run(&|part| part.wait()).unwrap();
        }
    }

    /// How a child exits; `None` if it is still there after ten seconds, and then it is ended.
    #[cfg(unix)]
    fn status_of(child: libc::pid_t) -> Option<i32> {
        let begin = Instant::now();
        let mut status = 0;
        loop {
            // SAFETY: the call writes to one number.
            if unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } == child {
                return Some(status);
            }
            if begin.elapsed() > Duration::from_secs(10) {
                // SAFETY: a child of ours that has not been waited for.
                unsafe { libc::kill(child, libc::SIGKILL) };
                // SAFETY: as above.
                unsafe { libc::waitpid(child, &mut status, 0) };
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn sleeping_workers_are_woken() {
        let mut pool = ThreadPool::new(2).unwrap();
        for _ in 0..3 {
            std::thread::sleep(3 * IDLE.offer);
            let runs = AtomicUsize::new(0);
            pool.run(&|_| {
                runs.fetch_add(1, Ordering::Relaxed);
            })
            .unwrap();
            assert_eq!(runs.load(Ordering::Relaxed), 2);
        }
    }
}
