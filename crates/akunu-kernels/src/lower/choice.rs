//! The choice of tokens: the best of parts and then of those, or penalties and a draw; before it the rules of transcripts,
//! and after it the record of how probable the chosen ones were.

use crate::kernel::common::copy;
use crate::kernel::sampling::{
    argmax, argmax_partial, draw, penalties, speech_rules, token_scores,
};
use std::mem::offset_of;

use akunu_program::{Choose, Count, Op, op};
use akunu_types::params::{
    ArgmaxParams, ArgmaxPartialParams, DrawParams, ElementwiseParams, PenaltiesParams,
    SpeechRulesParams, TokenScoresParams,
};

use super::lowering::Lowering;
use crate::pipeline::PipelineKey;
use crate::plan::{KernelCall, RowField};
use crate::table::KernelId;

/// Logits of a part in the first stage of the greedy choice, at least: four for each thread, and enough parts for a large GPU.
const ARGMAX_PART: u32 = Op::CANDIDATE_LOGITS;
/// Threadgroups of it that a large GPU runs at once: 8 on each of 132 cores.
const AT_ONCE: u32 = 1056;

/// Logits of a part: where outputs are many, so many that no threadgroup waits for another to end.
fn argmax_part(n_outputs: u32, vocab_size: u32) -> u32 {
    let parts_of_an_output = (AT_ONCE / n_outputs.max(1)).max(1);
    let part = vocab_size.div_ceil(parts_of_an_output);
    part.next_multiple_of(ARGMAX_PART).max(ARGMAX_PART)
}

impl Lowering<'_> {
    pub(super) fn choose(&mut self, choose: &op::Choose) {
        match choose.how {
            Choose::Best => self.choose_best(choose),
            Choose::ByRule => {
                self.penalise(choose);
                self.draw(choose);
            }
        }
    }

    /// The best of each part, then the best of those.
    fn choose_best(&mut self, choose: &op::Choose) {
        let step = self.step();
        let (count, memory) = (choose.vocab_size, &choose.memory);
        let (values, ids) = (memory.values.into(), memory.ids.into());
        let part = argmax_part(self.program.room.outputs, count);
        let params = ArgmaxPartialParams {
            count,
            part,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(ArgmaxPartialParams, n_rows), Count::Outputs);
        let key = PipelineKey::plain(KernelId::ArgmaxPartial);
        let buffers = argmax_partial::Buffers {
            logits: choose.logits,
            values,
            ids,
        };
        self.push(KernelCall::new(key, &params, buffers, "argmax of parts").with_rows([field]));
        let params = ArgmaxParams {
            count: count.div_ceil(part),
            indexed: 1,
            history_stride: step.history_stride,
            n_sequences: step.n_sequences,
            row_capacity: step.row_capacity,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(ArgmaxParams, n_rows), Count::Outputs);
        let key = PipelineKey::plain(KernelId::Argmax);
        let buffers = argmax::Buffers {
            values,
            ids,
            tokens: step.tokens.into(),
            history: step.history.into(),
            outputs: step.outputs.into(),
            rows: step.rows.into(),
        };
        self.push(KernelCall::new(key, &params, buffers, "argmax").with_rows([field]));
    }

    fn penalise(&mut self, choose: &op::Choose) {
        let (step, memory) = (self.step(), &choose.memory);
        let params = PenaltiesParams {
            vocab_size: choose.vocab_size,
            history_stride: step.history_stride,
            n_sequences: step.n_sequences,
            row_capacity: step.row_capacity,
            bias_stride: memory.bias_stride,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(PenaltiesParams, n_rows), Count::Outputs);
        let buffers = penalties::Buffers {
            logits: choose.logits,
            outputs: step.outputs.into(),
            rows: step.rows.into(),
            rules: step.rules.into(),
            history: step.history.into(),
            bias_tokens: memory.bias_tokens.into(),
            bias_values: memory.bias_values.into(),
            breakers: memory.breakers.into(),
        };
        let key = PipelineKey::plain(KernelId::Penalties);
        self.push(KernelCall::new(key, &params, buffers, "penalties").with_rows([field]));
    }

    fn draw(&mut self, choose: &op::Choose) {
        let step = self.step();
        let params = DrawParams {
            vocab_size: choose.vocab_size,
            history_stride: step.history_stride,
            n_sequences: step.n_sequences,
            row_capacity: step.row_capacity,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(DrawParams, n_rows), Count::Outputs);
        let buffers = draw::Buffers {
            logits: choose.logits,
            tokens: step.tokens.into(),
            history: step.history.into(),
            outputs: step.outputs.into(),
            rows: step.rows.into(),
            rules: step.rules.into(),
            mu: choose.memory.mu.into(),
        };
        let key = PipelineKey::plain(KernelId::Draw);
        self.push(KernelCall::new(key, &params, buffers, "draw").with_rows([field]));
    }

    pub(super) fn speech_rules(&mut self, rules: &op::SpeechRules) {
        let (step, tokens) = (self.step(), &rules.tokens);
        let params = SpeechRulesParams {
            n_rows: 0,
            vocab_size: rules.vocab_size,
            history_stride: step.history_stride,
            n_sequences: step.n_sequences,
            row_capacity: step.row_capacity,
            end: tokens.end,
            first_time: tokens.first_time,
            n_first_times: tokens.n_first_times,
        };
        let field = RowField::new(offset_of!(SpeechRulesParams, n_rows), Count::Outputs);
        let buffers = speech_rules::Buffers {
            logits: rules.logits,
            masks: rules.masks,
            history: step.history.into(),
            outputs: step.outputs.into(),
            rows: step.rows.into(),
            rules: step.rules.into(),
        };
        let key = PipelineKey::plain(KernelId::SpeechRules);
        self.push(KernelCall::new(key, &params, buffers, "speech rules").with_rows([field]));
    }

    pub(super) fn keep_logits(&mut self, keep: &op::KeepLogits) {
        let count = offset_of!(ElementwiseParams, count);
        let field = RowField::times(count, Count::Outputs, keep.vocab_size);
        let key = PipelineKey::plain(KernelId::Copy);
        let params = ElementwiseParams::default();
        let buffers = copy::Buffers {
            x: keep.logits,
            y: keep.to,
        };
        self.push(KernelCall::new(key, &params, buffers, "kept logits").with_rows([field]));
    }

    pub(super) fn score(&mut self, score: &op::Score) {
        let (step, memory) = (self.step(), &score.memory);
        let params = TokenScoresParams {
            vocab_size: score.vocab_size,
            n_sequences: step.n_sequences,
            row_capacity: step.row_capacity,
            record_stride: memory.record_stride,
            max_steps: step.max_steps,
            max_best: memory.max_best,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(TokenScoresParams, n_rows), Count::Outputs);
        let buffers = token_scores::Buffers {
            logits: memory.logits.into(),
            tokens: step.tokens.into(),
            scores: memory.scores.into(),
            best_tokens: memory.best_tokens.into(),
            outputs: step.outputs.into(),
            rows: step.rows.into(),
            rules: step.rules.into(),
        };
        let key = PipelineKey::plain(KernelId::TokenScores);
        self.push(KernelCall::new(key, &params, buffers, "log probabilities").with_rows([field]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when many outputs have small parts, which take longer, or an output more of them than there is memory for.
    #[test]
    fn parts_grow_with_the_outputs() {
        const VOCAB: u32 = 150_000;
        for (n_outputs, expected) in [
            (1, 1024),
            (8, 2048),
            (16, 3072),
            (64, 10_240),
            (256, 37_888),
        ] {
            let part = argmax_part(n_outputs, VOCAB);
            assert_eq!(part, expected, "{n_outputs} outputs");
            let n_parts = VOCAB.div_ceil(part);
            assert!(n_parts <= Op::candidates(VOCAB) && n_outputs * n_parts <= AT_ONCE);
        }
        assert_eq!(argmax_part(2000, VOCAB), VOCAB.next_multiple_of(1024));
        assert_eq!(argmax_part(0, 100), 1024);
    }
}
