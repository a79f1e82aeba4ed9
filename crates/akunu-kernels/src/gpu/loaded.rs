//! A loaded program, and the rounds of it that a backend keeps.

use akunu_program::Counts;

use crate::plan::Plan;

use super::backend::Backend;
use super::encode::SubmissionPart;

/// Most rounds that are kept of a program: one for each number of sequences that step together.
const MAX_ROUNDS: usize = 16;

/// A program and its kept rounds, the newest last.
pub(super) struct Loaded<B: Backend> {
    pub(super) plan: Plan,
    rounds: Vec<(Counts, B::Round)>,
}

impl<B: Backend> Loaded<B> {
    pub(super) fn new(plan: Plan) -> Loaded<B> {
        let rounds = Vec::new();
        Loaded { plan, rounds }
    }

    /// One round of the whole program.
    pub(super) fn part(&self, counts: Counts) -> SubmissionPart {
        SubmissionPart {
            rounds: 1,
            dispatches: 0..self.plan.dispatches().len(),
            counts,
        }
    }

    /// The round that is kept for these rows.
    pub(super) fn round(&self, counts: Counts) -> Option<&B::Round> {
        let mut rounds = self.rounds.iter();
        rounds.find_map(|(of, round)| (*of == counts).then_some(round))
    }

    /// Keeps a round; returns the oldest one where there are too many.
    pub(super) fn add(&mut self, counts: Counts, round: B::Round) -> Option<B::Round> {
        self.rounds.push((counts, round));
        (self.rounds.len() > MAX_ROUNDS).then(|| self.rounds.remove(0).1)
    }

    /// Takes all rounds out.
    pub(super) fn forget(&mut self) -> Vec<B::Round> {
        let rounds = std::mem::take(&mut self.rounds);
        rounds.into_iter().map(|(_, round)| round).collect()
    }
}
