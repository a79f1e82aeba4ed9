//! What is known of a row after some of its keys.

use crate::kernel::attention::blocks::LOWEST;
use crate::kernel::attention::problem::Problem;

/// What is known after some keys, for each head of a group.
pub(crate) struct State<'a> {
    /// Weighted sums of the values, (group, head_dim).
    pub sums: &'a mut [f32],
    /// The largest scores.
    pub peaks: &'a mut [f32],
    /// Sums of the weights.
    pub weights: &'a mut [f32],
}

impl<'a> State<'a> {
    /// Floats of a state.
    pub fn len(problem: &Problem) -> usize {
        problem.group * (problem.head_dim + 2)
    }

    /// The state before any key.
    pub fn of(problem: &Problem, memory: &'a mut [f32]) -> State<'a> {
        let group = problem.group;
        let (sums, rest) = memory.split_at_mut(group * problem.head_dim);
        let (peaks, rest) = rest.split_at_mut(group);
        let weights = &mut rest[..group];
        sums.fill(0.0);
        peaks.fill(LOWEST);
        weights.fill(0.0);
        State {
            sums,
            peaks,
            weights,
        }
    }
}
