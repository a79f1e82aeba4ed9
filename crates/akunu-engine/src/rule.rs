//! How the tokens of a sequence are chosen, as the device gets it: the rule, and the lists that it refers to.

mod make;

use std::sync::Arc;

use akunu_types::params::SamplingRule;

/// Most tokens with a bias.
pub const MAX_BIASES: usize = 1024;
/// The maximum number of tokens whose log probabilities are given besides the chosen one's.
pub const MAX_LOGPROBS: u32 = 20;

/// How the tokens of a sequence are chosen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rule {
    pub words: SamplingRule,
    /// Tokens, and what is added to their logits. No token stands twice.
    pub biases: Arc<[(u32, f32)]>,
    /// A bit for each token at which a repetition ends; empty if DRY is off.
    pub breakers: Arc<[u32]>,
    /// Mirostat's current limit on the surprise.
    pub mu: f32,
}

impl PartialEq for Rule {
    /// Lists that were made for one answer are one list.
    fn eq(&self, other: &Rule) -> bool {
        self.words == other.words
            && self.mu == other.mu
            && Arc::ptr_eq(&self.biases, &other.biases)
            && Arc::ptr_eq(&self.breakers, &other.breakers)
    }
}
