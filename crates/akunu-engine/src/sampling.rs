//! How the next token is chosen, on the device.

use akunu_kernels::kernel::sampling::topk_select::MAX_K;
use akunu_kernels::program::Choose;
use akunu_types::params::SamplingRule;

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
    /// How many of the last tokens are penalised; 0 for all, of which the last 8192 count.
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

    /// Which kind of choice it takes.
    pub(crate) fn choice(&self) -> Choose {
        if self.temperature == 0.0 && self.repetition_penalty == 1.0 {
            Choose::Best
        } else {
            Choose::ByRule
        }
    }

    /// The same for the device.
    pub(crate) fn rule(&self) -> SamplingRule {
        let is_greedy = self.temperature == 0.0;
        SamplingRule {
            inv_temperature: if is_greedy {
                1.0
            } else {
                1.0 / self.temperature
            },
            top_p: self.top_p,
            min_p: self.min_p,
            penalty: self.repetition_penalty,
            top_k: self.top_k,
            penalty_window: self.penalty_window,
            seed_lo: self.seed as u32,
            seed_hi: (self.seed >> 32) as u32,
            is_greedy: is_greedy.into(),
            ..Default::default()
        }
    }
}
