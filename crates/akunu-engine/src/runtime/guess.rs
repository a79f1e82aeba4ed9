//! Guesses of the block for multi-token prediction, for several sequences at once.

use akunu_program::Choose;
use akunu_types::params::Row;

use super::kind::Kind;
use super::state::Runtime;
use crate::error::EngineError;
use crate::rule::Rule;
use crate::sequence::Sequence;

/// A sequence that the block guesses for.
pub(crate) struct Guessing<'a> {
    pub sequence: &'a mut Sequence,
    /// How its tokens are chosen.
    pub rule: &'a Rule,
    /// The token behind all that is cached.
    pub next: u32,
}

impl Runtime {
    /// The `n` tokens that the block chooses after each sequence and its next token. The pages and states of the sequences stay as
    /// they are up to there.
    pub fn guess(
        &mut self,
        of: &mut [Guessing],
        how: Choose,
        n: u32,
    ) -> Result<Vec<Vec<u32>>, EngineError> {
        for Guessing { sequence, .. } in of.iter_mut() {
            self.reserve(sequence, sequence.cached + n as usize)?;
            self.reserve_states(sequence, 1)?;
        }
        self.begin(of.len())?;
        for guessing in of.iter_mut() {
            self.push_guessing(guessing)?;
        }
        let ticket = self.submit(Kind::Guess(how), n)?;
        self.wait(ticket)?;
        let mut guesses = vec![Vec::with_capacity(n as usize); of.len()];
        for round in 0..n {
            for (guesses, token) in guesses.iter_mut().zip(self.chosen_in(round, of.len())?) {
                guesses.push(token);
            }
        }
        Ok(guesses)
    }

    fn push_guessing(&mut self, of: &mut Guessing) -> Result<(), EngineError> {
        let sequence = &mut *of.sequence;
        self.set_rule(sequence, of.rule)?;
        self.sit_down(sequence)?;
        let at = sequence.cached;
        if sequence.known <= at {
            self.write_history(sequence.seat, at, &[of.next])?;
            sequence.known = at + 1;
        }
        let from = self.state_at(sequence, at)?;
        // The step that checks the guesses takes the block for a state of its own.
        let to = sequence.states.spare.last().copied();
        let [from, to] = [from.map(|state| state.block), to].map(Row::state_number);
        let row = Row::at(sequence.seat, at as u32).with_states(from, to);
        self.table.push_single(row.alone(), of.next);
        Ok(())
    }
}
