//! Whether other programs want the cores of our threads.
//!
//! A thread that runs and is taken off its core, because somebody else's turn has come, is counted by the system. On a
//! machine with a free core for each thread this hardly ever happens; with one busy program beside us it happens at
//! the end of every time slice, hundreds of times a second.

use std::time::{Duration, Instant};

/// Time over which switches are counted.
const WINDOW: Duration = Duration::from_millis(20);
/// More switches a second than this make a crowd.
const SWITCHES_A_SECOND: f64 = 64.0;

/// Counts switches while jobs run.
#[derive(Default)]
pub(crate) struct Crowd {
    /// Time that jobs took since the last verdict, and switches in it.
    busy: Duration,
    switches: u64,
    verdict: bool,
}

/// A job that runs.
pub(crate) struct Watch {
    begin: Instant,
    switches: u64,
}

impl Crowd {
    /// Begins to watch a job.
    pub fn watch() -> Watch {
        Watch {
            begin: Instant::now(),
            switches: involuntary_switches(),
        }
    }

    /// Ends the watch: whether the next jobs run in a crowd.
    pub fn after(&mut self, watch: Watch) -> bool {
        let switches = involuntary_switches().saturating_sub(watch.switches);
        self.count(watch.begin.elapsed(), switches)
    }

    fn count(&mut self, busy: Duration, switches: u64) -> bool {
        self.busy += busy;
        self.switches += switches;
        if self.busy >= WINDOW {
            self.verdict = self.switches as f64 > SWITCHES_A_SECOND * self.busy.as_secs_f64();
            (self.busy, self.switches) = (Duration::ZERO, 0);
        }
        self.verdict
    }
}

/// How often threads of this process were taken off their core while they had something to do.
#[cfg(unix)]
fn involuntary_switches() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call writes a whole struct, for which there is room; zeros are a valid one if it fails.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    u64::try_from(usage.ru_nivcsw).unwrap_or(0)
}

/// Other systems do not tell.
#[cfg(not(unix))]
fn involuntary_switches() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_verdict_takes_a_window_and_lasts_until_the_next() {
        let mut crowd = Crowd::default();
        assert!(!crowd.count(10 * MS, 50), "too early to tell");
        assert!(crowd.count(10 * MS, 0), "50 switches in 20 ms");
        assert!(crowd.count(19 * MS, 0), "too early again");
        assert!(!crowd.count(MS, 1), "one switch in 20 ms");
    }

    /// Fails if the system's figures are not read: two threads that want one core take turns on it.
    #[cfg(target_os = "linux")]
    #[test]
    fn threads_that_share_a_core_are_switched() {
        let before = involuntary_switches();
        let end = Instant::now() + 200 * MS;
        // More threads than cores.
        let n = 2 * std::thread::available_parallelism().map_or(1, usize::from) + 1;
        std::thread::scope(|scope| {
            for _ in 0..n {
                scope.spawn(|| while Instant::now() < end {});
            }
        });
        assert!(involuntary_switches() > before);
    }
}
