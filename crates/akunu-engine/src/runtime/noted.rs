//! Writes rules of choice to the device, and reads what choices record besides tokens.

use std::ops::Range;

use akunu_types::params::SamplingRule;

use super::state::Runtime;
use super::told::{Noted, Told};
use crate::error::EngineError;
use crate::logprobs::TokenLogprobs;
use crate::rule::{MAX_BIASES, MAX_LOGPROBS, Rule};
use crate::sequence::Sequence;

impl Runtime {
    /// Writes to the device how the tokens of a sequence that has a seat are chosen.
    pub(super) fn write_rule(&mut self, sequence: &Sequence) -> Result<(), EngineError> {
        let seat = sequence.seat as usize;
        let Rule {
            words,
            biases,
            breakers,
            mu,
        } = &sequence.rule;
        let (ids, values): (Vec<u32>, Vec<f32>) = biases.iter().copied().unzip();
        let lists = self.memory.lists;
        let breaker_words = self.model.config.vocab_size.div_ceil(32) as usize;
        let n = breakers.len().min(breaker_words);
        let writes = [
            (
                lists.bias_tokens,
                4 * MAX_BIASES,
                bytemuck::cast_slice(&ids),
            ),
            (
                lists.bias_values,
                4 * MAX_BIASES,
                bytemuck::cast_slice(&values),
            ),
            (
                lists.breakers,
                4 * breaker_words,
                bytemuck::cast_slice(&breakers[..n]),
            ),
            (lists.mu, 4, bytemuck::bytes_of(mu)),
            (
                self.memory.step.rules,
                size_of::<SamplingRule>(),
                bytemuck::bytes_of(words),
            ),
        ];
        for (buffer, stride, bytes) in writes {
            if !bytes.is_empty() {
                self.device.write(buffer, seat * stride, bytes)?;
            }
        }
        self.seats[seat].told = Told::of(sequence);
        Ok(())
    }

    /// What was recorded about the token chosen from an output of the last step, which was not a chain.
    pub fn read_noted(&self, sequence: &Sequence, output: usize) -> Result<Noted, EngineError> {
        self.noted(&Told::of(sequence), output, 0..1)
    }

    /// What some rounds have recorded for a row.
    pub(super) fn noted(
        &self,
        told: &Told,
        output: usize,
        rounds: Range<u32>,
    ) -> Result<Noted, EngineError> {
        let mut noted = Noted::default();
        if told.has_mu {
            let mut mu = [0f32];
            let bytes = bytemuck::cast_slice_mut(&mut mu);
            self.device
                .read(self.memory.lists.mu, 4 * told.seat, bytes)?;
            noted.mu = Some(mu[0]);
        }
        if told.n_scores > 0 {
            for round in rounds {
                let scores = self.read_scores(told.n_scores as usize - 1, output, round)?;
                noted.scores.extend(scores);
            }
        }
        Ok(noted)
    }

    fn read_scores(
        &self,
        n_best: usize,
        output: usize,
        round: u32,
    ) -> Result<Option<TokenLogprobs>, EngineError> {
        let Some(memory) = self.memory.outputs.scores else {
            return Ok(None);
        };
        let round = (round % self.memory.step.max_steps) as usize;
        let place = round * memory.record_stride as usize + output;
        let max_best = MAX_LOGPROBS as usize;
        let (mut scores, mut ids) = (vec![0f32; n_best + 1], vec![0u32; n_best]);
        let bytes = bytemuck::cast_slice_mut(&mut scores);
        self.device
            .read(memory.scores, 4 * place * (max_best + 1), bytes)?;
        let bytes = bytemuck::cast_slice_mut(&mut ids);
        self.device
            .read(memory.best_tokens, 4 * place * max_best, bytes)?;
        Ok(Some(TokenLogprobs {
            chosen: scores[0],
            top: ids.into_iter().zip(scores.into_iter().skip(1)).collect(),
        }))
    }
}
