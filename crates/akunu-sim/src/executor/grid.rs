//! Runs the threadgroups of a launch, on one or several host threads.

use super::count::{Recorder, recorded};
use super::denormals::Flushed;
use super::schedule::Schedule;
use super::threadgroup::{Failure, Job, Worker};
use crate::library::Library;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Host threads keep their stacks from one launch to the next.
static WORKERS: Mutex<Vec<Worker>> = Mutex::new(Vec::new());

/// A launch, as the host threads share it.
pub(crate) struct Grid<'a> {
    pub(crate) job: Job<'a>,
    pub(crate) library: &'a Library,
    pub(crate) schedule: Schedule,
    /// Whether denormal numbers are zeros.
    pub(crate) flushes: bool,
}

// SAFETY: the raw pointers are addresses of bindings, which the threadgroups share as GPU threads do;
// each host thread otherwise uses its own worker.
unsafe impl Sync for Grid<'_> {}

impl Grid<'_> {
    /// Runs every threadgroup, or up to the first that fails. Counting uses one host thread.
    ///
    /// # Safety
    /// As [`Worker::run`] asks of the job.
    pub(crate) unsafe fn run(
        &self,
        host_threads: usize,
        recorder: Option<&mut Recorder>,
    ) -> Result<(), Failure> {
        let count = self.job.grid.iter().product::<u32>();
        let mut order: Vec<u32> = (0..count).collect();
        self.schedule.orders(u64::MAX).arrange(&mut order);
        let state = State {
            order,
            next: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            failure: Mutex::new(None),
        };
        if host_threads <= 1 || recorder.is_some() {
            // SAFETY: passed on.
            recorded(recorder, || unsafe { self.work(&state) });
        } else {
            std::thread::scope(|scope| {
                for _ in 0..host_threads {
                    // SAFETY: passed on.
                    scope.spawn(|| unsafe { self.work(&state) });
                }
            });
        }
        let failure = state
            .failure
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        failure.map_or(Ok(()), |(_, failure)| Err(failure))
    }

    /// Takes threadgroups until none is left.
    ///
    /// # Safety
    /// As [`Worker::run`] asks of the job.
    unsafe fn work(&self, state: &State) {
        let mut workers = WORKERS.lock().unwrap_or_else(PoisonError::into_inner);
        let mut worker = workers.pop().unwrap_or_else(Worker::new);
        drop(workers);
        let slot = self.library.current();
        let _flushed = self.flushes.then(Flushed::begin);
        while !state.stop.load(Ordering::Relaxed) {
            let turn = state.next.fetch_add(1, Ordering::Relaxed);
            let Some(&flat) = state.order.get(turn) else {
                break;
            };
            let [x, y, _] = self.job.grid;
            let position = [flat % x, flat / x % y, flat / x / y];
            let mut orders = self.schedule.orders(u64::from(flat));
            // SAFETY: by contract; the slot is this library's on this host thread.
            if let Err(failure) = unsafe { worker.run(&self.job, position, &mut orders, slot) } {
                state.stop.store(true, Ordering::Relaxed);
                let mut first = state.failure.lock().unwrap_or_else(PoisonError::into_inner);
                if first.as_ref().is_none_or(|(earlier, _)| turn < *earlier) {
                    *first = Some((turn, failure));
                }
            }
        }
        WORKERS
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(worker);
    }
}

struct State {
    order: Vec<u32>,
    next: AtomicUsize,
    stop: AtomicBool,
    /// The failure of the earliest threadgroup in the order.
    failure: Mutex<Option<(usize, Failure)>>,
}
