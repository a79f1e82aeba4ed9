//! Something that a model was asked for, from the request to its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Stats;

/// One answer, list of texts or recording. It is counted as waiting, then as running, and by how it ends: when it is dropped before
/// that, its client has gone.
pub(crate) struct Task {
    stats: Arc<Stats>,
    since: Instant,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Waiting,
    Running,
    Over,
}

impl Task {
    /// Something is asked for, and waits.
    pub fn new(stats: &Arc<Stats>) -> Task {
        stats.requests.inc();
        stats.waiting.inc();
        Task {
            stats: Arc::clone(stats),
            since: Instant::now(),
            phase: Phase::Waiting,
        }
    }

    /// How long ago it was asked for.
    pub fn age(&self) -> Duration {
        self.since.elapsed()
    }

    /// It is worked on.
    pub fn run(&mut self) {
        self.enter(Phase::Running);
        self.stats.running.inc();
    }

    /// It is answered.
    pub fn end(&mut self) {
        self.enter(Phase::Over);
        self.stats.whole.observe(self.age().as_secs_f64());
    }

    /// It has failed.
    pub fn fail(&mut self) {
        self.enter(Phase::Over);
        self.stats.failures.inc();
    }

    /// The same by its end.
    pub fn end_with<T, E>(&mut self, result: &Result<T, E>) {
        match result {
            Ok(_) => self.end(),
            Err(_) => self.fail(),
        }
    }

    fn enter(&mut self, next: Phase) {
        match self.phase {
            Phase::Waiting => self.stats.waiting.dec(),
            Phase::Running => self.stats.running.dec(),
            Phase::Over => 0,
        };
        self.phase = next;
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if self.phase != Phase::Over {
            self.enter(Phase::Over);
            self.stats.given_up.inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(stats: &Stats) -> [i64; 5] {
        let counters = [&stats.requests, &stats.given_up, &stats.failures];
        let [requests, given_up, failures] = counters.map(|counter| counter.get() as i64);
        let (waiting, running) = (stats.waiting.get(), stats.running.get());
        [requests, waiting, running, given_up, failures]
    }

    /// Breaks when a task is counted in two places at once, or in none, or when one that has ended counts as given up.
    #[test]
    fn a_task_is_in_one_place_at_a_time() {
        let stats = Arc::new(Stats::default());
        let mut task = Task::new(&stats);
        assert_eq!(counted(&stats), [1, 1, 0, 0, 0]);
        task.run();
        assert_eq!(counted(&stats), [1, 0, 1, 0, 0]);
        task.end();
        drop(task);
        assert_eq!(counted(&stats), [1, 0, 0, 0, 0]);
        let mut failed = Task::new(&stats);
        failed.end_with(&Err::<(), ()>(()));
        drop(failed);
        assert_eq!(counted(&stats), [2, 0, 0, 0, 1]);
        let mut running = Task::new(&stats);
        running.run();
        drop((running, Task::new(&stats)));
        assert_eq!(counted(&stats), [4, 0, 0, 2, 1]);
    }
}
