//! What choices record besides tokens.

use crate::logprobs::TokenLogprobs;
use crate::sequence::Sequence;

/// What is recorded about the tokens of a seat.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    pub seat: usize,
    /// As in [`SamplingRule::n_scores`](akunu_types::params::SamplingRule::n_scores).
    pub n_scores: u32,
    pub has_mu: bool,
}

/// What a choice records besides its token.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    /// How likely each token was, if somebody asks for it.
    pub scores: Vec<TokenLogprobs>,
    /// Mirostat's bound after the last one.
    pub mu: Option<f32>,
}

impl Told {
    pub fn of(sequence: &Sequence) -> Told {
        Told {
            seat: sequence.seat as usize,
            n_scores: sequence.rule.words.n_scores,
            has_mu: sequence.rule.words.mirostat_tau > 0.0,
        }
    }
}
