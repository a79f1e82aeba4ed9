//! How probable a model finds a text: the sum behind its perplexity.
//!
//! Token i is scored by the logits of row i - 1:
//!
//! ```text
//! ln p(i) = l[token i] - max(l) - ln sum exp(l - max(l))
//! ```
//!
//! The logits of a chunk are computed in blocks of rows, so that memory does not grow with the text
//! times the vocabulary. The sum is in f64.

use std::ops::ControlFlow;

use super::feed::{Watch, ask};
use super::state::Session;
use crate::error::EngineError;
use crate::runtime::Kind;

/// Bytes of the logits that are computed at once.
const BLOCK_BYTES: usize = 16 << 20;

impl Session {
    /// The natural logarithm of the probability of each token from `from` on, given all before it.
    /// Nothing comes before the first token, so it is never scored: a `from` of 0 counts as 1.
    ///
    /// It begins with an empty cache and leaves the session empty.
    pub fn score(&mut self, tokens: &[u32], from: usize) -> Result<Vec<f32>, EngineError> {
        self.score_watched(tokens, from, &mut |_| ControlFlow::Continue(()))
    }

    /// Like [`Session::score`], with `watch` asked before each chunk.
    pub fn score_watched(
        &mut self,
        tokens: &[u32],
        from: usize,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<f32>, EngineError> {
        self.clear();
        self.check(tokens)?;
        let scores = self.score_chunks(tokens, from.max(1), watch);
        self.clear();
        scores
    }

    fn score_chunks(
        &mut self,
        tokens: &[u32],
        from: usize,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<f32>, EngineError> {
        let mut scores = Vec::with_capacity(tokens.len().saturating_sub(from));
        for chunk in tokens.chunks(self.chunk()) {
            let first = self.sequence.tokens.len();
            ask(watch, first, tokens.len())?;
            // Row r of this chunk predicts token first + r + 1.
            let begin = (from - 1).saturating_sub(first).min(chunk.len());
            let end = (tokens.len() - 1 - first).min(chunk.len());
            let predicted = &tokens[first + 1..first + 1 + end];
            self.score_chunk(chunk, begin, predicted, &mut scores)?;
        }
        Ok(scores)
    }

    /// Runs a chunk and scores `predicted[r]` by its row r, from row `begin` on.
    fn score_chunk(
        &mut self,
        chunk: &[u32],
        begin: usize,
        predicted: &[u32],
        scores: &mut Vec<f32>,
    ) -> Result<(), EngineError> {
        let vocab_size = self.model.config().vocab_size as usize;
        let n_rows = (BLOCK_BYTES / (4 * vocab_size)).clamp(1, self.chunk());
        let mut logits = vec![0f32; n_rows * vocab_size];
        let mut runtime = self.model.runtime();
        // Nobody else may step between the chunk and its logits.
        runtime.read_prompt(&mut self.sequence, chunk, Kind::Layers)?;
        let mut row = begin;
        while row < predicted.len() {
            let end = predicted.len().min(row + n_rows);
            runtime.want_outputs(row as u32..end as u32);
            runtime.run(Kind::OnlyLogits)?;
            let read = &mut logits[..(end - row) * vocab_size];
            runtime.read_logits(0, read)?;
            let rows = read.chunks_exact(vocab_size).zip(&predicted[row..end]);
            scores.extend(rows.map(|(logits, &token)| log_probability(logits, token)));
            row = end;
        }
        Ok(())
    }
}

fn log_probability(logits: &[f32], token: u32) -> f32 {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits
        .iter()
        .map(|&logit| f64::from((logit - max).exp()))
        .sum();
    (f64::from(logits[token as usize] - max) - sum.ln()) as f32
}

#[cfg(test)]
mod tests {
    use super::log_probability;

    #[test]
    fn probabilities_of_a_row_sum_to_one_whatever_its_offset() {
        for offset in [0.0, 1e4, -1e4] {
            let logits = [1.0, 2.0, -3.0, 0.5].map(|logit| logit + offset);
            let sum: f32 = (0..4)
                .map(|token| log_probability(&logits, token).exp())
                .sum();
            assert!((sum - 1.0).abs() < 1e-3, "{sum} at {offset}");
        }
    }

    #[test]
    fn equal_logits_share() {
        assert_eq!(log_probability(&[0.25; 8], 3), -(8f32.ln()));
    }
}
