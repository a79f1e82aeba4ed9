//! How chains are started and read.

use std::sync::Arc;

use akunu_program::Choose;

use super::chain::{Chain, ChainId, Chosen, RowChosen};
use super::kind::Kind;
use super::state::Runtime;
use crate::error::EngineError;

impl Runtime {
    /// Starts `n` rounds of the rows that are there. The record of choices has room for two of the longest chains.
    pub fn start_chain(&mut self, how: Choose, n: u32) -> Result<ChainId, EngineError> {
        let rows = self.table.rows();
        let (n_rows, start) = (rows.len(), rows.first().map_or(0, |row| row.step));
        let seats = rows.iter().map(|row| row.sequence as usize);
        let told = seats.map(|seat| self.seats[seat].told).collect();
        let ticket = self.submit(Kind::Chain(how), n)?;
        self.n_chains += 1;
        let id = ChainId(self.n_chains);
        self.chains.push_back(Chain {
            id,
            ticket,
            n_rows,
            told,
            start,
            n,
        });
        Ok(id)
    }

    /// What the oldest chain has chosen, once it has ended.
    pub fn finish_chain(&mut self, id: ChainId) -> Result<Chosen, EngineError> {
        if let Some(kept) = self.kept_chains.remove(&id) {
            return kept.map_err(|why| EngineError::Step { why });
        }
        match self.chains.pop_front_if(|chain| chain.id == id) {
            Some(chain) => self.read_chain(&chain),
            None => Err(EngineError::UnknownSequence),
        }
    }

    /// Reads chains that their owner has not asked for yet, and keeps what they have chosen.
    pub(super) fn keep_chains(&mut self) {
        while let Some(chain) = self.chains.pop_front() {
            let chosen = self.read_chain(&chain);
            let chosen = chosen.map_err(|error| Arc::new(error.to_string()));
            self.kept_chains.insert(chain.id, chosen);
        }
    }

    /// The tokens that the first `n_rows` rows have chosen in a round.
    pub(super) fn chosen_in(&self, round: u32, n_rows: usize) -> Result<Vec<u32>, EngineError> {
        let step = &self.memory.step;
        let place = (round % step.max_steps) as usize;
        let offset = 4 * place * step.row_capacity as usize;
        let mut chosen = vec![0u32; n_rows];
        let bytes = bytemuck::cast_slice_mut(&mut chosen);
        self.device.read(step.chosen, offset, bytes)?;
        Ok(chosen)
    }

    fn read_chain(&mut self, chain: &Chain) -> Result<Chosen, EngineError> {
        self.wait(chain.ticket)?;
        let mut tokens = vec![vec![0; chain.n as usize]; chain.n_rows];
        for at in 0..chain.n {
            let chosen = self.chosen_in(chain.start + at, chain.n_rows)?;
            for (tokens, token) in tokens.iter_mut().zip(chosen) {
                tokens[at as usize] = token;
            }
        }
        let rows = chain.told.iter().zip(tokens).enumerate();
        let rows = rows.map(|(output, (told, tokens))| {
            let rounds = chain.start..chain.start + chain.n;
            let noted = self.noted(told, output, rounds)?;
            Ok(RowChosen { tokens, noted })
        });
        rows.collect()
    }
}
