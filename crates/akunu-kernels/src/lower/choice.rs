//! The choice of tokens: penalties, candidates in stages until they fit one threadgroup, then the best or a draw.

use std::mem::offset_of;

use akunu_types::params::{
    ArgmaxParams, ArgmaxPartialParams, GumbelTopKParams, RepetitionPenaltyParams, TopKParams,
};

use super::Lowering;
use crate::kernel::sampling::topk_select::{MAX_K, MAX_PART};
use crate::pipeline::PipelineKey;
use crate::plan::{KernelCall, RowField, Slice};
use crate::program::{Candidates, Choose};
use crate::step::Count;
use crate::table::KernelId;

/// Logits of a part in the first stage of the greedy choice.
const ARGMAX_PART: u32 = 4096;

/// Candidates of one output in whichever stage has the most.
pub(crate) fn candidates(vocab_size: u32) -> u32 {
    let parts = vocab_size.div_ceil(MAX_PART) * MAX_K;
    parts.max(vocab_size.div_ceil(ARGMAX_PART))
}

impl Lowering<'_> {
    pub(super) fn choose(
        &mut self,
        how: Choose,
        logits: Slice,
        vocab_size: u32,
        candidates: Candidates,
    ) {
        match how {
            Choose::Best => self.choose_best(logits, vocab_size, candidates),
            Choose::ByRule => {
                self.penalise(logits, vocab_size);
                self.draw(logits, vocab_size, candidates);
            }
        }
    }

    /// The best of each part, then the best of those.
    fn choose_best(&mut self, logits: Slice, count: u32, candidates: Candidates) {
        let step = self.step();
        let (values, ids) = (candidates.values[0].into(), candidates.ids[0].into());
        let params = ArgmaxPartialParams {
            count,
            part: ARGMAX_PART,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(ArgmaxPartialParams, n_rows), Count::Outputs);
        let key = PipelineKey::plain(KernelId::ArgmaxPartial);
        let bindings = vec![logits, values, ids];
        self.push(KernelCall::new(key, &params, bindings, "argmax of parts").with_rows([field]));
        let params = ArgmaxParams {
            count: count.div_ceil(ARGMAX_PART),
            indexed: 1,
            history_stride: step.history_stride,
            n_sequences: step.n_sequences,
            row_capacity: step.row_capacity,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(ArgmaxParams, n_rows), Count::Outputs);
        let key = PipelineKey::plain(KernelId::Argmax);
        let bindings = [vec![values, ids], self.chosen()].concat();
        self.push(KernelCall::new(key, &params, bindings, "argmax").with_rows([field]));
    }

    fn penalise(&mut self, logits: Slice, vocab_size: u32) {
        let step = self.step();
        let params = RepetitionPenaltyParams {
            vocab_size,
            history_stride: step.history_stride,
            n_sequences: step.n_sequences,
            row_capacity: step.row_capacity,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(RepetitionPenaltyParams, n_rows), Count::Outputs);
        let tables = [step.outputs, step.rows, step.rules, step.history].map(Slice::from);
        let bindings = [vec![logits], tables.to_vec()].concat();
        let key = PipelineKey::plain(KernelId::RepetitionPenalty);
        self.push(KernelCall::new(key, &params, bindings, "penalty").with_rows([field]));
    }

    /// The best candidates of each part, until there is one part; then the draw.
    fn draw(&mut self, logits: Slice, vocab_size: u32, candidates: Candidates) {
        let step = self.step();
        let k = MAX_K.min(vocab_size);
        let (mut values, mut ids) = (logits, Slice::from(candidates.ids[1]));
        let mut count = vocab_size;
        for stage in 0.. {
            let params = TopKParams {
                count,
                k,
                part: MAX_PART,
                indexed: (stage > 0).into(),
                ..Default::default()
            };
            let top_values = Slice::from(candidates.values[stage % 2]);
            let top_ids = Slice::from(candidates.ids[stage % 2]);
            let bindings = vec![values, ids, top_values, top_ids];
            let field = RowField::new(offset_of!(TopKParams, n_rows), Count::Outputs);
            let key = PipelineKey::plain(KernelId::TopKSelect);
            self.push(KernelCall::new(key, &params, bindings, "top k").with_rows([field]));
            (values, ids) = (top_values, top_ids);
            let n_parts = count.div_ceil(MAX_PART);
            if n_parts == 1 {
                break;
            }
            count = n_parts * k;
        }
        let params = GumbelTopKParams {
            k,
            history_stride: step.history_stride,
            n_sequences: step.n_sequences,
            row_capacity: step.row_capacity,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(GumbelTopKParams, n_rows), Count::Outputs);
        let rules = vec![step.rules.into()];
        let bindings = [vec![values, ids], self.chosen(), rules].concat();
        let key = PipelineKey::plain(KernelId::GumbelTopK);
        self.push(KernelCall::new(key, &params, bindings, "draw").with_rows([field]));
    }

    /// Where a choice goes and what it belongs to.
    fn chosen(&self) -> Vec<Slice> {
        let step = self.step();
        [step.tokens, step.history, step.outputs, step.rows]
            .map(Slice::from)
            .to_vec()
    }
}
