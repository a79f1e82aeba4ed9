//! How many threads are worth running while other programs need cores too.
//!
//! All threads of a team wait for the slowest. A thread that shares its core with another program stands still for
//! milliseconds whenever that program has its turn, and all others wait for it: 16 threads of which four share their core
//! are slower than 12 that have one each. So the team shrinks by the threads that lose their core, and grows again
//! from time to time to see whether the others have gone.
//!
//! The system counts how often a thread is taken off its core while it has something to do. On a core of its own this
//! hardly ever happens; beside one busy program it happens at the end of every time slice, hundreds of times a second.

use std::time::{Duration, Instant};

/// Time over which switches are counted.
const WINDOW: Duration = Duration::from_millis(25);
/// A thread that is switched more often than this within a window shares its core.
const SWITCHES: u64 = 2;
/// How long a team stays small before it is tried in full size: at first, and at most after more and more tries.
const FIRST_REST: Duration = Duration::from_millis(250);
const LONGEST_REST: Duration = Duration::from_secs(4);

/// Decides on the size of a team.
pub(crate) struct Crowd {
    n_threads: usize,
    active: usize,
    /// Time that jobs took in this window, and switches of each thread in it.
    busy: Duration,
    switches: Vec<u64>,
    /// When the full size is tried again, and how long the next rest is.
    rest_ends: Option<Instant>,
    rest: Duration,
}

impl Crowd {
    pub fn new(n_threads: usize) -> Crowd {
        Crowd {
            n_threads,
            active: n_threads,
            busy: Duration::ZERO,
            switches: vec![0; n_threads],
            rest_ends: None,
            rest: FIRST_REST,
        }
    }

    /// A team of which some threads are left out at first.
    #[cfg(test)]
    pub fn of_size(n_threads: usize, active: usize) -> Crowd {
        Crowd {
            active,
            ..Crowd::new(n_threads)
        }
    }

    /// Threads that the next job should have.
    pub fn active(&self) -> usize {
        self.active
    }

    /// Counts a job that took `busy` and ended at `now`; `switches` are those of each thread that had a part in it.
    pub fn count(&mut self, busy: Duration, now: Instant, switches: impl Iterator<Item = u64>) {
        self.busy += busy;
        for (sum, switches) in self.switches.iter_mut().zip(switches) {
            *sum += switches;
        }
        if self.busy < WINDOW {
            return;
        }
        // A window of one long job has more switches than one of many short jobs.
        let windows = self.busy.div_duration_f64(WINDOW).max(1.0);
        let shares_its_core = |&&sum: &&u64| sum as f64 > SWITCHES as f64 * windows;
        let crowded = self.switches.iter().filter(shares_its_core).count();
        self.busy = Duration::ZERO;
        self.switches.fill(0);
        self.decide(crowded, now);
    }

    /// Shrinks by the threads that share their core, but never by more than half: if all do, fewer help little.
    fn decide(&mut self, crowded: usize, now: Instant) {
        if crowded > 0 {
            if self.active == self.n_threads {
                self.rest = (2 * self.rest).min(LONGEST_REST);
            }
            let half = self.n_threads.div_ceil(2);
            self.active = self.active.saturating_sub(crowded).max(half);
            self.rest_ends = Some(now + self.rest);
        } else if self.active == self.n_threads {
            self.rest = FIRST_REST;
        } else if self.rest_ends.is_some_and(|end| now >= end) {
            self.active = self.n_threads;
        }
    }
}

/// How often this thread was taken off its core while it had something to do.
#[cfg(target_os = "linux")]
pub(crate) fn involuntary_switches() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call writes a whole struct, for which there is room; zeros are a valid one if it fails.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    u64::try_from(usage.ru_nivcsw).unwrap_or(0)
}

/// Other systems do not tell it of a thread.
#[cfg(not(target_os = "linux"))]
pub(crate) fn involuntary_switches() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Fails if a team does not shrink by the threads without a core of their own, or stays small for ever.
    #[test]
    fn a_team_shrinks_in_a_crowd_and_grows_when_it_is_gone() {
        let mut crowd = Crowd::new(8);
        let mut now = Instant::now();
        let mut window = |crowd: &mut Crowd, switches: [u64; 8], rest: Duration| {
            now += rest;
            crowd.count(10 * MS, now, [0; 8].into_iter());
            crowd.count(15 * MS, now, switches.into_iter());
            crowd.active()
        };
        let two = [0, 9, 0, 0, 9, 0, 1, 0];
        assert_eq!(window(&mut crowd, [1; 8], MS), 8, "now and then a switch");
        assert_eq!(window(&mut crowd, two, MS), 6);
        assert_eq!(window(&mut crowd, [0; 8], MS), 6, "rests");
        assert_eq!(window(&mut crowd, [0; 8], LONGEST_REST), 8, "tries again");
        assert_eq!(window(&mut crowd, [9; 8], MS), 4, "never less than half");
        assert_eq!(window(&mut crowd, [9; 8], MS), 4);
        assert_eq!(window(&mut crowd, [0; 8], LONGEST_REST), 8);
        assert_eq!(window(&mut crowd, [0; 8], MS), 8);
    }

    /// Fails if switches of a long job are taken for those of a short one.
    #[test]
    fn a_long_job_may_have_more_switches() {
        let mut crowd = Crowd::new(2);
        crowd.count(1000 * MS, Instant::now(), [60, 0].into_iter());
        assert_eq!(crowd.active(), 2, "60 in 40 windows");
        crowd.count(1000 * MS, Instant::now(), [160, 0].into_iter());
        assert_eq!(crowd.active(), 1);
    }

    /// Fails if the system's figures are not read: threads that want one core take turns on it.
    #[cfg(target_os = "linux")]
    #[test]
    fn threads_that_share_a_core_are_switched() {
        let end = Instant::now() + 200 * MS;
        // More threads than cores.
        let n = 2 * std::thread::available_parallelism().map_or(1, usize::from) + 1;
        let busy = || {
            while Instant::now() < end {}
            involuntary_switches()
        };
        let switches: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..n).map(|_| scope.spawn(busy)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum()
        });
        assert!(switches > 0);
    }
}
