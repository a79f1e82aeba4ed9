//! The states of sequences, for models whose layers have some.
//!
//! Each row names two blocks: it continues from the state in one and writes its own state to the other. The first block keeps its
//! state, so that a sequence can come back to it:
//!
//! ```text
//! prompt      base ──▶ snapshot, at an end of a page before the last tokens ──▶ live
//! chain       live ──▶ live ──▶ live …        in place, up to the next multiple of SNAPSHOT tokens; then live becomes the base
//! guesses     live ──▶ a block for each guess, of which the last right one becomes live
//! ```
//!
//! The last snapshot of a prompt stays as long as the sequence has that prompt: the next one often has all of it but the answer.
//! A sequence that is cut between base and live goes back to its base, and reads the tokens after it again. A base at the end
//! of a page gets the page's name, in a separate pool: other sequences with the same beginning continue from it, and it is kept
//! until its memory is needed.

use akunu_types::params::Row;

use super::sizes::PAGE;
use super::state::Runtime;
use crate::error::EngineError;
use crate::guesses::Tree;
use crate::sequence::{Left, Sequence, State};

/// Tokens from one state of a growing answer that is kept to the next.
const SNAPSHOT: usize = 4 * PAGE;
/// Tokens at the end of a prompt that the next prompt often lacks: with them a template opens the answer.
const OPENING: usize = 16;
/// Blocks that a piece of a prompt writes.
pub(crate) const RUN_STATES: usize = 2;
/// Bytes of all states up to which the pool grows rather than to give up those that are only kept.
const BUDGET: u64 = 512 << 20;
/// The smallest number of blocks that a pool grows to.
const FEW: u32 = 8;
/// Blocks that a row can name.
const MOST: u32 = Row::NO_STATE as u32;

impl Runtime {
    /// Whether sequences have states.
    pub fn has_states(&self) -> bool {
        !self.memory.states.is_empty()
    }

    /// Makes sure that the sequence has so many blocks to write to.
    pub fn reserve_states(&mut self, sequence: &mut Sequence, n: usize) -> Result<(), EngineError> {
        while self.has_states() && sequence.states.spare.len() < n {
            let block = self.take_block()?;
            sequence.states.spare.push(block);
        }
        Ok(())
    }

    pub(super) fn take_block(&mut self) -> Result<u32, EngineError> {
        let has = self.states.n_pages();
        let budget = self.state_budget();
        let may_grow = has < budget || self.states.n_available() == 0;
        if !self.states.has_free() && may_grow && has < MOST {
            let more = (2 * has).clamp(FEW, budget.max(has + FEW));
            self.grow_states(more.min(MOST))?;
        }
        let full = EngineError::PoolFull {
            positions: has as usize,
        };
        self.states.take().ok_or(full)
    }

    /// Blocks up to which the pool grows rather than to give up states that are only kept.
    pub(super) fn state_budget(&self) -> u32 {
        let affordable = BUDGET / self.model.config.state_bytes().max(1);
        let limit = self
            .max_positions
            .map_or(MOST, |positions| positions / SNAPSHOT as u32);
        (affordable.min(limit.into())).clamp(FEW.into(), MOST.into()) as u32
    }

    fn grow_states(&mut self, n_blocks: u32) -> Result<(), EngineError> {
        self.keep_chains();
        let config = &self.model.config;
        self.memory
            .grow_states(config, n_blocks, self.device.as_mut())?;
        self.states.grow(n_blocks);
        self.forget_seats();
        Ok(())
    }

    /// The sequence's state after its first `at` tokens; `None` for a sequence without tokens.
    pub(super) fn state_at(
        &self,
        sequence: &Sequence,
        at: usize,
    ) -> Result<Option<State>, EngineError> {
        let states = &sequence.states;
        let mut all = [states.live, states.base].into_iter().flatten();
        match all.find(|state| state.at == at) {
            Some(state) => Ok(Some(state)),
            None if at == 0 => Ok(None),
            None => Err(EngineError::StateLost),
        }
    }

    /// The states of the rows of a prompt's piece, of `n` tokens after all that is cached.
    pub(super) fn run_states(
        &mut self,
        sequence: &mut Sequence,
        n: usize,
    ) -> Result<RunStates, EngineError> {
        self.drop_left(sequence);
        if !self.has_states() {
            return Ok(RunStates::default());
        }
        let from = self.state_at(sequence, sequence.cached)?;
        let (first, end) = (sequence.cached, sequence.cached + n);
        let page_end = end.saturating_sub(OPENING) / PAGE * PAGE;
        let snapshot = match page_end > first {
            true => Some(State {
                at: page_end,
                block: spare(sequence)?,
            }),
            false => None,
        };
        let end = State {
            at: end,
            block: spare(sequence)?,
        };
        sequence.states.left = Left::Run {
            from,
            snapshot,
            end,
        };
        Ok(RunStates {
            from: from.map(|state| state.block),
            snapshot,
            to: Some(end.block),
        })
    }

    /// The states of the next tokens of a sequence, `n` of them, and of guesses behind them: of each row the block that it goes
    /// on from and the one that it writes.
    pub(super) fn next_states(
        &mut self,
        sequence: &mut Sequence,
        n: usize,
        guesses: Option<&Tree>,
    ) -> Result<Vec<[u16; 2]>, EngineError> {
        self.drop_left(sequence);
        if !self.has_states() {
            let n_rows = n + guesses.map_or(0, Tree::len);
            return Ok(vec![[Row::NO_STATE; 2]; n_rows]);
        }
        let from = self.state_at(sequence, sequence.cached)?;
        if from != sequence.states.live || !self.writes_in_place(sequence) {
            self.check_state(sequence, from)?;
            let block = spare(sequence)?;
            self.make_base(sequence, from);
            let at = sequence.cached;
            sequence.states.live = Some(State { at, block });
        }
        if sequence.states.checked.is_none() {
            self.check_state(sequence, from)?;
        }
        let Some(live) = &mut sequence.states.live else {
            return Err(EngineError::StateLost);
        };
        let (block, at) = (live.block, sequence.cached + n);
        // Known again when the step has ended.
        live.at = usize::MAX;
        let own = Row::state_number(Some(block));
        let first = Row::state_number(from.map(|state| state.block));
        let mut rows = vec![[own, own]; n];
        if let Some(row) = rows.first_mut() {
            row[0] = first;
        }
        let mut left = vec![State { at, block }];
        for node in 0..guesses.map_or(0, Tree::len) {
            let parent = guesses.and_then(|tree| tree.parent(node));
            let before = left[parent.map_or(0, |parent| 1 + parent)];
            let block = spare(sequence)?;
            rows.push([
                Row::state_number(Some(before.block)),
                Row::state_number(Some(block)),
            ]);
            let at = before.at + 1;
            left.push(State { at, block });
        }
        sequence.states.left = Left::Next(left);
        Ok(rows)
    }

    /// Whether the next tokens may overwrite the state that they go on from.
    pub fn writes_in_place(&self, sequence: &Sequence) -> bool {
        if !self.has_states() {
            return true;
        }
        let states = &sequence.states;
        states.live.is_some_and(|live| {
            let base = states.base.map_or(0, |base| base.at);
            live.at / SNAPSHOT == base / SNAPSHOT && self.states.owners(live.block) == 1
        })
    }

    /// Rounds that a chain of this sequence may have.
    pub fn rounds_in_place(&self, sequence: &Sequence) -> usize {
        match self.has_states() {
            true => SNAPSHOT - sequence.cached % SNAPSHOT,
            false => usize::MAX,
        }
    }

    /// Takes note that a chain of `n` rounds was started, whose rows go on in place.
    pub fn chain_started(&mut self, sequence: &mut Sequence, n: usize) {
        let left = std::mem::take(&mut sequence.states.left);
        let Some(live) = &mut sequence.states.live else {
            return;
        };
        live.at = match &left {
            Left::Next(left) => left[0].at + n - 1,
            Left::Nothing | Left::Run { .. } => live.at.saturating_add(n),
        };
    }

    /// A state that stays becomes the base.
    pub(super) fn make_base(&mut self, sequence: &mut Sequence, state: Option<State>) {
        let states = &mut sequence.states;
        let before = [states.base.take(), states.live.take()];
        states.base = state;
        for old in before
            .into_iter()
            .flatten()
            .filter(|old| Some(*old) != state)
        {
            self.states.release(old.block);
        }
        if let Some(state) = state {
            self.name_state(sequence, state);
        }
    }

    /// Takes note of the states that a step has left, now that what it has read is known.
    pub(super) fn settle_states(&mut self, sequence: &mut Sequence) {
        for block in std::mem::take(&mut sequence.states.spare) {
            self.states.release(block);
        }
        match std::mem::take(&mut sequence.states.left) {
            Left::Nothing => {}
            Left::Run {
                from,
                snapshot,
                end,
            } => {
                self.make_base(sequence, snapshot.or(from));
                if snapshot.is_some() {
                    self.keep_for_prompt(sequence);
                }
                sequence.states.checked = None;
                match end.at.is_multiple_of(PAGE) {
                    // A state with a name must not be overwritten.
                    true => self.make_base(sequence, Some(end)),
                    false => sequence.states.live = Some(end),
                }
            }
            Left::Next(mut left) => {
                let reached = left.iter().find(|state| state.at == sequence.cached);
                let live = sequence.states.live;
                if let (Some(&reached), Some(live)) = (reached, live) {
                    if reached.block != live.block {
                        self.states.release(live.block);
                        left.retain(|state| state.block != live.block);
                    }
                    sequence.states.live = Some(reached);
                }
                sequence.states.left = Left::Next(left);
            }
        }
    }

    /// Keeps the states of the right guesses and of the tokens before them; releases the others.
    pub(super) fn keep_right_states(&mut self, sequence: &mut Sequence, path: &[usize]) {
        let Left::Next(left) = &mut sequence.states.left else {
            return;
        };
        let all = std::mem::take(left);
        for (at, state) in all.into_iter().enumerate() {
            match at.checked_sub(1).is_none_or(|node| path.contains(&node)) {
                true => left.push(state),
                false => self.states.release(state.block),
            }
        }
    }

    /// Gives back the blocks of a step that came to nothing.
    pub(super) fn drop_left(&mut self, sequence: &mut Sequence) {
        let states = &mut sequence.states;
        let left = match std::mem::take(&mut states.left) {
            Left::Nothing => Vec::new(),
            Left::Run { snapshot, end, .. } => snapshot.into_iter().chain([end]).collect(),
            Left::Next(left) => left,
        };
        let kept = [states.live, states.base].map(|state| state.map(|state| state.block));
        for state in left
            .into_iter()
            .filter(|left| !kept.contains(&Some(left.block)))
        {
            self.states.release(state.block);
        }
    }
}

/// The states of the rows of a prompt's piece.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RunStates {
    from: Option<u32>,
    snapshot: Option<State>,
    to: Option<u32>,
}

impl RunStates {
    /// The block that the row at a position goes on from and the one that it writes; `is_first` of the piece.
    pub fn of(&self, position: usize, is_first: bool) -> [u16; 2] {
        let before = self.snapshot.filter(|snapshot| position < snapshot.at);
        let to = before.map(|snapshot| snapshot.block).or(self.to);
        let is_behind = |snapshot: &State| position == snapshot.at;
        let from = match self.snapshot.filter(is_behind) {
            Some(snapshot) => Some(snapshot.block),
            None if is_first => self.from,
            None => to,
        };
        [Row::state_number(from), Row::state_number(to)]
    }
}

/// A block that the sequence has got to write to.
fn spare(sequence: &mut Sequence) -> Result<u32, EngineError> {
    sequence.states.spare.pop().ok_or(EngineError::StateLost)
}
