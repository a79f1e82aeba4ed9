//! Parameters of sampling.

use crate::layout::shared_struct;

shared_struct! {
    /// `logits[i] *= inv_temperature`, in place.
    pub struct TemperatureScaleParams = "TemperatureScaleParams", size = 16 {
        /// `1 / temperature`.
        0 => inv_temperature: f32,
        /// Number of elements (the vocabulary size).
        4 => count: u32,
        /// Unused, zero.
        8 => _pad0: u32,
        /// Unused, zero.
        12 => _pad1: u32,
    }
}

shared_struct! {
    /// For each listed token: a positive logit is divided by the penalty, a negative one multiplied.
    pub struct RepetitionPenaltyParams = "RepetitionPenaltyParams", size = 16 {
        /// Above 1 discourages, below 1 encourages.
        0 => penalty: f32,
        /// Number of token ids in the list. Patched per token.
        4 => n_tokens: u32,
        /// Number of logits; an id beyond it is passed over. Padding in the reference.
        8 => vocab_size: u32,
        /// Unused, zero.
        12 => _pad0: u32,
    }
}
