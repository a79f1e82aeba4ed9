//! How many rounds of a chain one command buffer takes.
//!
//! The system ends GPU work that runs for seconds, and shows nothing new on the screen meanwhile. A
//! chain is cut by count, and by the time that its rounds have taken so far.

use std::time::Duration;

/// Most rounds of a command buffer.
const MAX_ROUNDS: u32 = 64;
/// Rounds of the first one, while nothing has been measured.
const FIRST_ROUNDS: u32 = 8;
/// What a command buffer should take at most.
const MAX_TIME: Duration = Duration::from_millis(500);

/// The time of a round, as measured last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    seconds_per_round: Option<f64>,
}

impl Pace {
    /// Rounds of the next command buffer when `left` are to be done.
    pub(super) fn rounds(&self, left: u32) -> u32 {
        let by_time = match self.seconds_per_round {
            None => FIRST_ROUNDS,
            Some(seconds) => (MAX_TIME.as_secs_f64() / seconds.max(1e-9)) as u32,
        };
        left.min(by_time.clamp(1, MAX_ROUNDS))
    }

    /// Takes note of what `rounds` took. A single round may be of another plan, a prefill.
    pub(super) fn measured(&mut self, rounds: u32, took: Duration) {
        if rounds > 1 && !took.is_zero() {
            self.seconds_per_round = Some(took.as_secs_f64() / f64::from(rounds));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_cut_by_count_and_by_time() {
        let mut pace = Pace::default();
        assert_eq!((pace.rounds(3), pace.rounds(100)), (3, FIRST_ROUNDS));
        pace.measured(8, Duration::from_millis(8));
        assert_eq!(pace.rounds(100), MAX_ROUNDS);
        pace.measured(8, Duration::from_millis(800));
        assert_eq!(pace.rounds(100), 5);
        pace.measured(2, Duration::from_secs(20));
        assert_eq!(pace.rounds(100), 1, "a round is never cut");
        pace.measured(1, Duration::from_millis(1));
        assert_eq!(pace.rounds(100), 1, "one round says nothing of a chain");
    }
}
