//! States that are kept beyond a step: those that sequences come back to, share, save and restore.

use super::sizes::PAGE;
use super::state::Runtime;
use crate::cache::Part;
use crate::error::EngineError;
use crate::sequence::{Sequence, State};

impl Runtime {
    /// Names a state at the end of a page, so that others find it.
    pub(super) fn name_state(&mut self, sequence: &mut Sequence, state: State) {
        let has_tokens = state.at <= sequence.tokens.len().min(sequence.pure);
        if state.at > 0 && state.at.is_multiple_of(PAGE) && has_tokens {
            let name = sequence.name(state.at / PAGE - 1, PAGE);
            self.states.name(state.block, name);
        }
    }

    /// Keeps the base for the next prompt: an answer may be longer than the pool has room for the states of it.
    pub(super) fn keep_for_prompt(&mut self, sequence: &mut Sequence) {
        let is_crowded = self.states.n_pages() > self.state_budget();
        let kept = sequence.states.base.filter(|_| !is_crowded);
        if let Some(state) = kept {
            self.states.share(state.block);
        }
        if let Some(old) = std::mem::replace(&mut sequence.states.prompt, kept) {
            self.states.release(old.block);
        }
    }

    /// Goes back to the last state at or before `cached`, and lowers `cached` to it.
    pub(super) fn cut_to_state(&mut self, sequence: &mut Sequence) {
        if !self.has_states() {
            return;
        }
        self.drop_left(sequence);
        let states = &mut sequence.states;
        if let Some(prompt) = states.prompt.take_if(|prompt| prompt.at > sequence.cached) {
            self.states.release(prompt.block);
        }
        if let Some(live) = states.live.take_if(|live| live.at != sequence.cached) {
            self.states.release(live.block);
        }
        if states.live.is_some() {
            return;
        }
        if let Some(base) = states.base.take_if(|base| base.at > sequence.cached) {
            self.states.release(base.block);
        }
        if let (None, Some(prompt)) = (states.base, states.prompt) {
            self.states.share(prompt.block);
            states.base = Some(prompt);
        }
        sequence.cached = states.base.map_or(0, |base| base.at);
    }

    /// Gives back all blocks of a sequence.
    pub(super) fn free_states(&mut self, sequence: &mut Sequence) {
        self.drop_left(sequence);
        let states = std::mem::take(&mut sequence.states);
        let kept = [states.live, states.base, states.prompt]
            .into_iter()
            .flatten();
        let blocks = kept.map(|state| state.block).chain(states.spare);
        blocks.for_each(|block| self.states.release(block));
    }

    /// Gives a fork the last state of its original, and lowers the fork's `cached` to it.
    pub(super) fn fork_states(&mut self, from: &Sequence, fork: &mut Sequence) {
        if !self.has_states() {
            return;
        }
        let states = [from.states.live, from.states.base].into_iter().flatten();
        let mut states = states.filter(|state| state.at <= from.cached);
        fork.states.base = states.next();
        fork.cached = fork.states.base.map_or(0, |base| base.at);
        if let Some(base) = fork.states.base {
            self.states.share(base.block);
        }
    }

    /// The most of the first `len` tokens after which there is a state: the sequence's own, or one of its name.
    pub(super) fn last_state(&mut self, sequence: &mut Sequence, len: usize) -> usize {
        if !self.has_states() {
            return len;
        }
        let states = [sequence.states.live, sequence.states.base];
        let own = states.into_iter().flatten().map(|state| state.at);
        let own = own.filter(|&at| at <= len).max().unwrap_or(0);
        let named = len.min(sequence.tokens.len()).min(sequence.pure) / PAGE;
        let mut named = (own / PAGE..named).rev();
        let found = named.find(|&index| {
            let name = sequence.name(index, PAGE);
            self.states.find(&name).is_some() || self.is_cached(Part::State(name))
        });
        found.map_or(own, |index| (index + 1) * PAGE)
    }

    /// Takes over the state after `at` tokens, which [`Runtime::last_state`] has found, if it is not the sequence's own.
    /// Returns whether the sequence can go on from there.
    pub(super) fn adopt_state(&mut self, sequence: &mut Sequence, at: usize) -> bool {
        let states = [sequence.states.live, sequence.states.base];
        let is_own = states.into_iter().flatten().any(|state| state.at == at);
        if !self.has_states() || at == 0 || is_own {
            return true;
        }
        let name = sequence.name(at / PAGE - 1, PAGE);
        if self.states.find(&name).is_none() && !self.fetch_state(name) {
            return false;
        }
        if let Some(block) = self.states.find(&name) {
            self.states.share(block);
            self.make_base(sequence, Some(State { at, block }));
        }
        true
    }

    /// The bytes of the states after the first `at` tokens, layer by layer.
    pub fn read_states(&self, sequence: &Sequence, at: usize) -> Result<Vec<u8>, EngineError> {
        let mut bytes = Vec::new();
        if !self.has_states() {
            return Ok(bytes);
        }
        if let Some(state) = self.state_at(sequence, at)? {
            for place in self.memory.state_places(&self.model.config, state.block) {
                let mut part = vec![0; place.bytes];
                self.device.read(place.buffer, place.offset, &mut part)?;
                bytes.extend(part);
            }
        }
        Ok(bytes)
    }

    /// Makes what [`Runtime::read_states`] has read the state after the first `at` tokens.
    pub fn write_states(
        &mut self,
        sequence: &mut Sequence,
        at: usize,
        mut bytes: &[u8],
    ) -> Result<(), EngineError> {
        if !self.has_states() || at == 0 {
            return Ok(());
        }
        self.free_states(sequence);
        let block = self.take_block()?;
        sequence.states.base = Some(State { at, block });
        for place in self.memory.state_places(&self.model.config, block) {
            let (part, rest) = bytes.split_at(place.bytes);
            self.device.write(place.buffer, place.offset, part)?;
            bytes = rest;
        }
        Ok(())
    }
}
