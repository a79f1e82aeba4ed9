//! What a step guesses for one sequence.

use super::judge::Source;
use crate::guesses::Tree;

/// What a step guesses for one sequence.
#[derive(Debug)]
pub(crate) struct Proposal {
    /// The guesses.
    pub tree: Tree,
    /// Where they come from.
    pub(super) source: Source,
    /// Whether they were made because they are expected to pay.
    pub(super) is_judged: bool,
    /// Seconds that such guesses take.
    pub(super) seconds: f64,
}

/// Where the guesses of a step come from.
pub(crate) enum Plan {
    /// There are none.
    Nothing,
    /// They are known.
    Guesses(Proposal),
    /// The model's own block computes them.
    Mtp(MtpPlan),
}

/// Guesses that the model's own block is to compute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MtpPlan {
    /// How many.
    pub n: usize,
    /// Whether it is that many because they are expected to pay.
    pub(super) is_judged: bool,
}

impl MtpPlan {
    /// What the block has guessed in so many seconds.
    pub fn proposal(self, tokens: &[u32], seconds: f64) -> Proposal {
        Proposal {
            tree: Tree::chain(&tokens[..self.n.min(tokens.len())]),
            source: Source::Mtp,
            is_judged: self.is_judged,
            seconds,
        }
    }
}
