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

use akunu_program::LogScale;

use super::feed::{Watch, ask};
use super::state::Session;
use crate::cancel::CancelFlag;
use crate::error::EngineError;
use crate::logprobs::TokenLogprobs;
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
        self.score_rows(tokens, from, watch, &|logits, token| {
            LogScale::of(logits).log_probability(logits[token as usize])
        })
    }

    /// Like [`Session::score`], with the `n_best` most likely tokens at each place, up to the size of the vocabulary.
    pub fn score_best(
        &mut self,
        tokens: &[u32],
        from: usize,
        n_best: usize,
    ) -> Result<Vec<TokenLogprobs>, EngineError> {
        let of_row = |logits: &[f32], token: u32| best_of_row(logits, token, n_best);
        let watch = &mut |_| ControlFlow::Continue(());
        self.score_rows(tokens, from, watch, &of_row)
    }

    /// What `of_row` makes of the logits before each token.
    fn score_rows<T>(
        &mut self,
        tokens: &[u32],
        from: usize,
        watch: &mut Watch<'_>,
        of_row: &dyn Fn(&[f32], u32) -> T,
    ) -> Result<Vec<T>, EngineError> {
        self.clear();
        self.check(tokens)?;
        let scores = self.score_chunks(tokens, from.max(1), watch, of_row);
        self.clear();
        scores
    }

    fn score_chunks<T>(
        &mut self,
        tokens: &[u32],
        from: usize,
        watch: &mut Watch<'_>,
        of_row: &dyn Fn(&[f32], u32) -> T,
    ) -> Result<Vec<T>, EngineError> {
        let mut scores = Vec::with_capacity(tokens.len().saturating_sub(from));
        for chunk in tokens.chunks(self.chunk()) {
            let first = self.sequence.tokens.len();
            ask(watch, first, tokens.len())?;
            // Row r of this chunk predicts token first + r + 1.
            let begin = (from - 1).saturating_sub(first).min(chunk.len());
            let end = (tokens.len() - 1 - first).min(chunk.len());
            let predicted = &tokens[first + 1..first + 1 + end];
            let rows = (chunk, begin);
            self.score_chunk(rows, predicted, of_row, &mut scores)?;
        }
        Ok(scores)
    }

    /// Runs a chunk and scores `predicted[r]` by its row r, from row `begin` on.
    fn score_chunk<T>(
        &mut self,
        (chunk, begin): (&[u32], usize),
        predicted: &[u32],
        of_row: &dyn Fn(&[f32], u32) -> T,
        scores: &mut Vec<T>,
    ) -> Result<(), EngineError> {
        let vocab_size = self.model.config().vocab_size as usize;
        let n_rows = (BLOCK_BYTES / (4 * vocab_size)).clamp(1, self.chunk());
        let mut logits = vec![0f32; n_rows * vocab_size];
        let mut runtime = self.model.runtime();
        // Nobody else may step between the chunk and its logits.
        runtime.read_prompt(
            &mut self.sequence,
            chunk,
            Kind::Layers,
            &CancelFlag::default(),
        )?;
        let mut row = begin;
        while row < predicted.len() {
            let end = predicted.len().min(row + n_rows);
            runtime.want_outputs(row as u32..end as u32);
            runtime.run(Kind::OnlyLogits)?;
            let read = &mut logits[..(end - row) * vocab_size];
            runtime.read_logits(0, read)?;
            if read.iter().any(|logit| logit.is_nan()) {
                let path = self.model.path().to_path_buf();
                return Err(EngineError::NotNumbers { path });
            }
            let rows = read.chunks_exact(vocab_size).zip(&predicted[row..end]);
            scores.extend(rows.map(|(logits, &token)| of_row(logits, token)));
            row = end;
        }
        Ok(())
    }
}

/// The log probability of a token and those of the most likely ones; of equals the one with the smaller id comes first.
fn best_of_row(logits: &[f32], token: u32, n_best: usize) -> TokenLogprobs {
    let scale = LogScale::of(logits);
    let better = |a: &u32, b: &u32| {
        let [of_a, of_b] = [a, b].map(|id| logits[*id as usize]);
        of_b.total_cmp(&of_a).then(a.cmp(b))
    };
    let mut ids: Vec<u32> = (0..logits.len() as u32).collect();
    let n_best = n_best.min(ids.len());
    if n_best < ids.len() {
        ids.select_nth_unstable_by(n_best, better);
        ids.truncate(n_best);
    }
    ids.sort_unstable_by(better);
    let of = |id: u32| scale.log_probability(logits[id as usize]);
    TokenLogprobs {
        chosen: of(token),
        top: ids.into_iter().map(|id| (id, of(id))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::{LogScale, best_of_row};

    fn log_probability(logits: &[f32], token: usize) -> f32 {
        LogScale::of(logits).log_probability(logits[token])
    }

    /// Fails when the best are not those with the largest logits, or come in another order.
    #[test]
    fn the_best_of_a_row_come_in_order() {
        let logits = [1.0, 3.0, -1.0, 3.0, 2.0];
        let best = best_of_row(&logits, 2, 3);
        let ids: Vec<u32> = best.top.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, [1, 3, 4]);
        assert_eq!(best.chosen, log_probability(&logits, 2));
        assert_eq!(best.top[0].1, log_probability(&logits, 1));
        assert_eq!(best_of_row(&logits, 2, 0).top, []);
        assert_eq!(best_of_row(&logits, 2, 9).top.len(), 5);
    }
}
