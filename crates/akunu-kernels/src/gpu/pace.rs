//! How a chain is cut into command buffers.
//!
//! The system ends GPU work that runs for seconds, and shows nothing new on the screen meanwhile. A
//! chain of many rounds is cut between rounds, by count and by the time that rounds have taken so far.
//! A single round may be the prefill of a long prompt: it is cut between dispatches, by what they
//! compute.

use std::ops::Range;
use std::time::Duration;

use akunu_program::Counts;

use super::encode::SubmissionPart;
use crate::plan::Plan;

/// Most rounds of a command buffer.
const MAX_ROUNDS: u32 = 64;
/// Rounds of the first one, while nothing has been measured.
const FIRST_ROUNDS: u32 = 8;
/// What a command buffer should take at most.
const MAX_TIME: Duration = Duration::from_millis(500);
/// Operations of a part of a round: about half a second on the smallest chip.
pub(super) const MAX_FLOPS: u64 = 500_000_000_000;
/// The same for a submission that can be stopped: two parts are under way, about a quarter of a second together.
pub(super) const STOPPABLE_FLOPS: u64 = MAX_FLOPS / 4;

/// The time of a round, as measured last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    seconds_per_round: Option<f64>,
}

impl Pace {
    /// The command buffers of `n` rounds; those of a single one compute `max_flops` at most.
    pub(super) fn parts(
        &self,
        plan: &Plan,
        counts: Counts,
        n: u32,
        max_flops: u64,
    ) -> Vec<SubmissionPart> {
        let part = |rounds, dispatches| SubmissionPart {
            rounds,
            dispatches,
            counts,
        };
        if n == 1 {
            return cut(plan.flops(), max_flops)
                .map(|dispatches| part(1, dispatches))
                .collect();
        }
        let (mut parts, mut left) = (Vec::new(), n);
        while left > 0 {
            let rounds = self.rounds(left);
            parts.push(part(rounds, 0..plan.dispatches().len()));
            left -= rounds;
        }
        parts
    }

    /// Rounds of the next command buffer when `left` are to be done.
    fn rounds(&self, left: u32) -> u32 {
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

/// Consecutive dispatches, as many as stay within the limit of operations, but at least one.
fn cut(flops: &[u64], max_flops: u64) -> impl Iterator<Item = Range<usize>> {
    let (mut parts, mut sum): (Vec<Range<usize>>, u64) = (Vec::new(), 0);
    for (at, &flops) in flops.iter().enumerate() {
        sum = sum.saturating_add(flops);
        match parts.last_mut() {
            Some(part) if sum <= max_flops => part.end = at + 1,
            _ => {
                parts.push(at..at + 1);
                sum = flops;
            }
        }
    }
    parts.into_iter()
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

    #[test]
    fn a_long_round_is_cut_by_what_it_computes() {
        let parts = |flops: &[u64]| cut(flops, MAX_FLOPS).collect::<Vec<_>>();
        let third = MAX_FLOPS / 3;
        assert_eq!(parts(&[]), []);
        assert_eq!(parts(&[third; 7]), [0..3, 3..6, 6..7]);
        // One that is too long by itself stays whole, and alone.
        assert_eq!(parts(&[1, 4 * third, 1, 1]), [0..1, 1..2, 2..4]);
        assert_eq!(parts(&[0, u64::MAX, u64::MAX]), [0..1, 1..2, 2..3]);
        let shorter = cut(&[third; 3], STOPPABLE_FLOPS).collect::<Vec<_>>();
        assert_eq!(shorter, [0..1, 1..2, 2..3], "where it can be stopped");
    }
}
