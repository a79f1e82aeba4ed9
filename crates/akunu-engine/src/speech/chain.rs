//! Chains of the decoder: several tokens of some windows are chosen in one submission.
//!
//! ```text
//! round 1   reads the last token of each window's prompt, and chooses its first token
//! round 2   reads that, and chooses the second one
//! …
//! ```
//!
//! The device applies the rules of transcripts, chooses, notes what it has chosen and how probable that was, and moves the
//! rows on. A window that ends within a chain goes on until the end of the chain; what it says there is dropped.

use akunu_program::Choose;
use akunu_types::params::{Row, SamplingRule};

use super::memory::MAX_CHAIN;
use super::runtime::{Kind, Runtime};
use crate::error::EngineError;

/// A token of a window that is read next.
pub(super) struct NextToken {
    pub window: u32,
    /// Tokens of the window before it.
    pub position: u32,
    pub token: u32,
}

/// A token that was chosen.
#[derive(Clone, Copy)]
pub(super) struct Chosen {
    pub token: u32,
    /// Among the tokens that could have followed.
    pub logprob: f32,
}

impl Runtime {
    /// How the tokens of a window are chosen from now on.
    pub fn set_rule(&mut self, window: u32, rule: &SamplingRule) -> Result<(), EngineError> {
        let offset = size_of::<SamplingRule>() * window as usize;
        let rules = self.memory.text_step.rules;
        Ok(self.device.write(rules, offset, bytemuck::bytes_of(rule))?)
    }

    /// Begins chains of these windows, which come in ascending order.
    pub fn begin_chains(&mut self, next: &[NextToken]) {
        self.text_rows.clear_rows();
        for next in next {
            let row = Row::at(next.window, next.position);
            self.text_rows.push_single(row, next.token);
        }
    }

    /// Chooses up to `most` tokens for each of the windows, and returns those of each. The next chain goes on from there.
    pub fn chain(&mut self, how: Choose, most: u32) -> Result<Vec<Vec<Chosen>>, EngineError> {
        let rows = self.text_rows.rows();
        let (n_rows, start) = (rows.len(), rows.first().map_or(0, |row| row.step));
        let plan = self.decoder(n_rows as u32, Kind::Chain(how))?;
        let n = self.chain_length().min(most);
        self.run(plan, n, true)?;
        let (step, scores) = (self.memory.text_step, self.memory.scores);
        let mut tokens = vec![0u32; (MAX_CHAIN * step.row_capacity) as usize];
        let mut logprobs = vec![0f32; (MAX_CHAIN * scores.record_stride) as usize];
        let bytes = bytemuck::cast_slice_mut(&mut tokens);
        self.device.read(step.chosen, 0, bytes)?;
        let bytes = bytemuck::cast_slice_mut(&mut logprobs);
        self.device.read(scores.scores, 0, bytes)?;
        let chosen = |row: usize, round: u32| {
            let round = ((start + round) % MAX_CHAIN) as usize;
            Chosen {
                token: tokens[round * step.row_capacity as usize + row],
                logprob: logprobs[round * scores.record_stride as usize + row],
            }
        };
        let of_row = |row| (0..n).map(|round| chosen(row, round)).collect();
        Ok((0..n_rows).map(of_row).collect())
    }

    /// Tokens of a chain. On a device that works by itself a chain spares the host's waiting; on one that the host works
    /// for, it would only read tokens after the end.
    fn chain_length(&self) -> u32 {
        if self.device.runs_ahead() {
            MAX_CHAIN
        } else {
            1
        }
    }
}
