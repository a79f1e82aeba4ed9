//! Rules on logits, written by users of this crate.

use std::sync::Arc;

/// A rule that changes logits before a token is chosen from them.
///
/// It is called for every token, before penalties, grammar and sampling. The same tokens must give the same change:
/// it may be called again for a token, and is also called for guessed tokens. Functions are rules:
///
/// ```
/// use akunu_engine::{GenerateOptions, LogitRules};
///
/// // Never token 42.
/// let rules = LogitRules::new().with(|_: &[u32], logits: &mut [f32]| logits[42] = f32::NEG_INFINITY);
/// let options = GenerateOptions { rules, ..GenerateOptions::default() };
/// ```
pub trait LogitRule: Send + Sync {
    /// Changes the logits of the token after `tokens`: the whole prompt and the answer so far. There is one for each row
    /// of the model's embedding.
    fn apply(&self, tokens: &[u32], logits: &mut [f32]);
}

impl<F: Fn(&[u32], &mut [f32]) + Send + Sync> LogitRule for F {
    fn apply(&self, tokens: &[u32], logits: &mut [f32]) {
        self(tokens, logits);
    }
}

/// Rules on logits, in the order in which they are applied. Clones are cheap and share them.
///
/// ```
/// use akunu_engine::LogitRules;
///
/// let no_newline = |_: &[u32], logits: &mut [f32]| logits[198] = f32::NEG_INFINITY;
/// let rules = LogitRules::new().with(no_newline);
/// assert!(!rules.is_empty());
/// ```
#[derive(Clone, Default)]
pub struct LogitRules(Vec<Arc<dyn LogitRule>>);

impl LogitRules {
    /// A list without a rule, which changes no logit.
    pub fn new() -> LogitRules {
        LogitRules::default()
    }

    /// Adds a rule after the others.
    pub fn with(mut self, rule: impl LogitRule + 'static) -> LogitRules {
        self.0.push(Arc::new(rule));
        self
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn apply(&self, tokens: &[u32], logits: &mut [f32]) {
        for rule in &self.0 {
            rule.apply(tokens, logits);
        }
    }
}

impl std::fmt::Debug for LogitRules {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "LogitRules({})", self.0.len())
    }
}
