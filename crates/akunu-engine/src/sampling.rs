//! How the next token is chosen, on the device.

mod options;

pub use options::SamplingOptions;

use akunu_program::Choose;
use akunu_types::params::SamplingRule;

/// How a token is chosen from the logits.
///
/// In the order of the steps: biases, repetition, frequency and presence penalties, DRY, `top_n_sigma`, `top_k`,
/// `typical_p`, `top_p`, `min_p`, XTC, temperature, then a draw that depends on the seed and on the position only. Each cut
/// sees the probabilities of the tokens that the steps before it have kept, of the whole vocabulary. Mirostat replaces
/// all cuts. `docs/sampling.md` has the formulas.
///
/// Later versions may have further fields: end a value with `..Sampling::greedy()`.
///
/// ```
/// use akunu_engine::Sampling;
///
/// let sampling = Sampling { temperature: 0.8, top_p: 0.95, seed: 7, ..Sampling::greedy() };
/// # drop(sampling);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// 0 always takes the best token, without cuts; higher is more varied.
    pub temperature: f32,
    /// The temperature moves by up to this much up and down, with the entropy of the candidates; 0: it does not.
    pub dynamic_range: f32,
    /// The power of the entropy that moves it, above 0.
    pub dynamic_exponent: f32,
    /// Candidates have logits at most this many standard deviations below the best one; 0 keeps all.
    pub top_n_sigma: f32,
    /// Candidates are this many of the best tokens; 0 keeps all.
    pub top_k: u32,
    /// Candidates are those whose surprise is nearest to the expected one, until their probabilities sum to this; above 0
    /// and at most 1, which keeps all.
    pub typical_p: f32,
    /// Candidates are kept until their probabilities sum to this, above 0 and at most 1, which keeps all.
    pub top_p: f32,
    /// Candidates are at least this many times as probable as the best one, 0 to 1.
    pub min_p: f32,
    /// XTC: how often all candidates of at least `xtc_threshold`, except the least probable of them, are left out, 0 to 1.
    pub xtc_probability: f32,
    /// The probability from which XTC counts a token, 0 to 1; above 0.5 nothing is ever left out.
    pub xtc_threshold: f32,
    /// If above 0, Mirostat 2 replaces all cuts and aims at this surprise, in bits.
    pub mirostat_tau: f32,
    /// How fast mirostat corrects itself, 0 to 1.
    pub mirostat_eta: f32,
    /// Above 1 makes tokens less likely that the answer has already; 1 does nothing.
    pub repetition_penalty: f32,
    /// Subtracted from the logit of a token for each time that the answer has it.
    pub frequency_penalty: f32,
    /// Subtracted once from the logit of a token that the answer has.
    pub presence_penalty: f32,
    /// How many of the last tokens the repetition, frequency and presence penalties count; 0 for all, of which the last 8192
    /// count.
    pub penalty_window: u32,
    /// Whether these penalties and DRY count the tokens of the prompt too, and not only those of the answer.
    pub penalise_prompt: bool,
    /// DRY: the penalty of a token that would continue a repetition of `dry_allowed_length` tokens; 0: none.
    pub dry_multiplier: f32,
    /// The factor of the DRY penalty for each further token of the repetition.
    pub dry_base: f32,
    /// Repetitions of at least this many tokens are penalised by DRY; at least 1.
    pub dry_allowed_length: u32,
    /// How many of the last tokens are searched for repetitions; 0 for all, of which the last 8192 count.
    pub dry_window: u32,
    /// The same seed gives the same tokens.
    pub seed: u64,
    /// Makes room for further options.
    #[doc(hidden)]
    pub _more: (),
}

impl Sampling {
    /// Always the most likely token.
    pub const fn greedy() -> Sampling {
        Sampling {
            temperature: 0.0,
            dynamic_range: 0.0,
            dynamic_exponent: 1.0,
            top_n_sigma: 0.0,
            top_k: 0,
            typical_p: 1.0,
            top_p: 1.0,
            min_p: 0.0,
            xtc_probability: 0.0,
            xtc_threshold: 0.1,
            mirostat_tau: 0.0,
            mirostat_eta: 0.1,
            repetition_penalty: 1.0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            penalty_window: 64,
            penalise_prompt: false,
            dry_multiplier: 0.0,
            dry_base: 1.75,
            dry_allowed_length: 2,
            dry_window: 0,
            seed: 0,
            _more: (),
        }
    }

    /// Whether tokens that came before are less likely.
    fn penalises(&self) -> bool {
        let counts = self.frequency_penalty != 0.0 || self.presence_penalty != 0.0;
        counts || self.repetition_penalty != 1.0 || self.dry_multiplier > 0.0
    }

    /// Which kind of choice it takes.
    pub(crate) fn choice(&self) -> Choose {
        if self.temperature == 0.0 && !self.penalises() {
            Choose::Best
        } else {
            Choose::ByRule
        }
    }

    /// The same for the device, for an answer to so many tokens.
    pub(crate) fn rule(&self, n_prompt: usize) -> SamplingRule {
        SamplingRule {
            temperature: self.temperature,
            dynamic_range: self.dynamic_range,
            dynamic_exponent: self.dynamic_exponent,
            seed_lo: self.seed as u32,
            seed_hi: (self.seed >> 32) as u32,
            n_sigma: self.top_n_sigma,
            top_k: self.top_k,
            typical_p: self.typical_p,
            top_p: self.top_p,
            min_p: self.min_p,
            xtc_probability: self.xtc_probability,
            xtc_threshold: self.xtc_threshold,
            mirostat_tau: self.mirostat_tau,
            mirostat_eta: self.mirostat_eta,
            repetition: self.repetition_penalty,
            frequency: self.frequency_penalty,
            presence: self.presence_penalty,
            penalty_window: self.penalty_window,
            penalty_start: match self.penalise_prompt {
                true => 0,
                false => u32::try_from(n_prompt).unwrap_or(u32::MAX),
            },
            dry_multiplier: self.dry_multiplier,
            dry_base: self.dry_base,
            dry_allowed: self.dry_allowed_length,
            dry_window: self.dry_window,
            ..Default::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a value out of its range reaches the device.
    #[test]
    fn values_out_of_range_are_refused_by_name() {
        assert!(Sampling::greedy().check().is_ok());
        type Change = fn(&mut Sampling);
        let changes: [(&str, Change); 8] = [
            ("temperature", |s| s.temperature = -1.0),
            ("top_p", |s| s.top_p = 0.0),
            ("typical_p", |s| s.typical_p = 1.5),
            ("xtc_threshold", |s| s.xtc_threshold = -0.1),
            ("mirostat_eta", |s| s.mirostat_eta = 2.0),
            ("presence_penalty", |s| s.presence_penalty = f32::NAN),
            ("dry_base", |s| s.dry_base = 0.5),
            ("dry_allowed_length", |s| s.dry_allowed_length = 0),
        ];
        for (name, change) in changes {
            let mut sampling = Sampling::greedy();
            change(&mut sampling);
            let said = sampling.check().expect_err(name).to_string();
            assert!(said.contains(name), "{said}");
        }
    }

    /// Fails if a penalty is passed over by the greedy choice.
    #[test]
    fn only_what_changes_nothing_takes_the_short_way() {
        assert_eq!(Sampling::greedy().choice(), Choose::Best);
        let changes: [fn(&mut Sampling); 5] = [
            |s| s.temperature = 0.1,
            |s| s.repetition_penalty = 1.1,
            |s| s.frequency_penalty = -1.0,
            |s| s.presence_penalty = 0.5,
            |s| s.dry_multiplier = 0.8,
        ];
        for change in changes {
            let mut sampling = Sampling::greedy();
            change(&mut sampling);
            assert_eq!(sampling.choice(), Choose::ByRule);
        }
    }
}
