//! How the next token is chosen, on the device.

use std::mem::offset_of;

use akunu_kernels::kernel::sampling::topk_select::{MAX_K, MAX_PART};
use akunu_kernels::plan::Slice;
use akunu_kernels::{Constant, Constants, KernelId, Patch};
use akunu_types::params::{
    ArgmaxParams, ArgmaxPartialParams, GumbelTopKParams, RepetitionPenaltyParams, TopKParams,
};

use crate::builder::{Builder, Choice};
use crate::error::EngineError;

/// How a token is chosen from the logits.
///
/// The order is: repetition penalty, the `top_k` best, `top_p`, `min_p`, temperature, then a draw that
/// depends on the seed and on the position only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// 0 takes the best token always; higher is more varied.
    pub temperature: f32,
    /// Candidates, 1 to 256; 0 for as many as possible.
    pub top_k: u32,
    /// Candidates are kept until their probabilities sum to this, above 0 and at most 1.
    pub top_p: f32,
    /// A candidate is at least this share as probable as the best one, 0 to 1.
    pub min_p: f32,
    /// Above 1 makes tokens that came before less likely; 1 does nothing.
    pub repetition_penalty: f32,
    /// How many of the last tokens are penalised; 0 for all.
    pub penalty_window: u32,
    /// The same seed gives the same tokens.
    pub seed: u64,
}

impl Sampling {
    /// Always the most likely token.
    pub const fn greedy() -> Sampling {
        Sampling {
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            penalty_window: 64,
            seed: 0,
        }
    }

    pub(crate) fn check(&self) -> Result<(), EngineError> {
        let rules = [
            (
                "temperature",
                self.temperature,
                self.temperature >= 0.0,
                "0 or more",
            ),
            ("top-k", self.top_k as f32, self.top_k <= MAX_K, "0 to 256"),
            (
                "top-p",
                self.top_p,
                self.top_p > 0.0 && self.top_p <= 1.0,
                "above 0, at most 1",
            ),
            (
                "min-p",
                self.min_p,
                (0.0..=1.0).contains(&self.min_p),
                "0 to 1",
            ),
            (
                "repetition penalty",
                self.repetition_penalty,
                self.repetition_penalty > 0.0,
                "above 0",
            ),
        ];
        for (option, found, holds, wanted) in rules {
            if !(holds && found.is_finite()) {
                return Err(EngineError::Sampling {
                    option,
                    found,
                    wanted,
                });
            }
        }
        Ok(())
    }

    /// Adds the dispatches that turn logits into the next token.
    pub(crate) fn write(&self, builder: &mut Builder, choice: Choice) -> Result<(), EngineError> {
        if self.repetition_penalty != 1.0 {
            self.write_penalty(builder, choice)?;
        }
        if self.temperature == 0.0 {
            write_argmax(builder, choice)
        } else {
            self.write_draw(builder, choice)
        }
    }

    fn write_penalty(&self, builder: &mut Builder, choice: Choice) -> Result<(), EngineError> {
        let Choice { lane, logits, .. } = choice;
        let params = RepetitionPenaltyParams {
            penalty: self.repetition_penalty,
            vocab_size: builder.config.vocab_size,
            ..Default::default()
        };
        let constants = match self.penalty_window {
            0 => Constants::none(),
            window => Constants::none().with_u32(Constant::PenaltyWindow, window),
        };
        let bindings = vec![logits, lane.memory.history.into()];
        let patch = Patch::length(offset_of!(RepetitionPenaltyParams, n_tokens), 1);
        builder.push_patched(
            KernelId::RepetitionPenalty,
            constants,
            &params,
            bindings,
            patch.ahead(lane.ahead),
        )
    }

    /// The best candidates, in stages until they fit one threadgroup, then the draw.
    fn write_draw(&self, builder: &mut Builder, choice: Choice) -> Result<(), EngineError> {
        let memory = choice.lane.memory;
        let k = if self.top_k == 0 { MAX_K } else { self.top_k }.min(builder.config.vocab_size);
        let (mut values, mut ids) = (choice.logits, Slice::from(memory.top_ids[1]));
        let mut count = builder.config.vocab_size;
        for stage in 0.. {
            let params = TopKParams {
                count,
                k,
                part: MAX_PART,
                indexed: (stage > 0).into(),
            };
            let top_values = Slice::from(memory.top_values[stage % 2]);
            let top_ids = Slice::from(memory.top_ids[stage % 2]);
            let bindings = vec![values, ids, top_values, top_ids];
            builder.plain(KernelId::TopKSelect, &params, bindings, "top k")?;
            (values, ids) = (top_values, top_ids);
            let n_parts = count.div_ceil(MAX_PART);
            if n_parts == 1 {
                break;
            }
            count = n_parts * k;
        }
        let params = GumbelTopKParams {
            k,
            history_len: choice.lane.context + 1,
            inv_temperature: 1.0 / self.temperature,
            top_p: self.top_p,
            min_p: self.min_p,
            seed_lo: self.seed as u32,
            seed_hi: (self.seed >> 32) as u32,
            ..Default::default()
        };
        let bindings = vec![values, ids, choice.token, memory.history.into()];
        let patch = Patch::position(offset_of!(GumbelTopKParams, pos)).ahead(choice.lane.ahead);
        builder.push_patched(
            KernelId::GumbelTopK,
            Constants::none(),
            &params,
            bindings,
            patch,
        )
    }
}

/// Logits of a part in the first stage of the greedy choice.
const ARGMAX_PART: u32 = 4096;

/// The most likely token: the best of each part, then the best of those.
fn write_argmax(builder: &mut Builder, choice: Choice) -> Result<(), EngineError> {
    let memory = choice.lane.memory;
    let count = builder.config.vocab_size;
    let values = Slice::from(memory.top_values[0]);
    let ids = Slice::from(memory.top_ids[0]);
    let params = ArgmaxPartialParams {
        count,
        part: ARGMAX_PART,
        ..Default::default()
    };
    let bindings = vec![choice.logits, values, ids];
    builder.plain(
        KernelId::ArgmaxPartial,
        &params,
        bindings,
        "argmax of parts",
    )?;
    let params = ArgmaxParams {
        count: count.div_ceil(ARGMAX_PART),
        history_len: choice.lane.context + 1,
        indexed: 1,
        ..Default::default()
    };
    let bindings = vec![values, ids, choice.token, memory.history.into()];
    let patch = Patch::position(offset_of!(ArgmaxParams, pos)).ahead(choice.lane.ahead);
    builder.push_patched(
        KernelId::Argmax,
        Constants::none(),
        &params,
        bindings,
        patch,
    )
}

/// Room for the candidates of a vocabulary, in whichever stage has the most.
pub(crate) fn candidates(vocab_size: u32) -> usize {
    let parts = vocab_size.div_ceil(MAX_PART) * MAX_K;
    parts.max(vocab_size.div_ceil(ARGMAX_PART)) as usize
}
