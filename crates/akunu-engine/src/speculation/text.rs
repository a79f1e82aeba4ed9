//! The text that guesses follow.

/// The tokens of a sequence, for those who guess the next ones.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a> {
    /// The tokens whose keys and values are computed.
    pub before: &'a [u32],
    /// The tokens after them that the next step reads.
    pub pending: &'a [u32],
    /// Tokens of the prompt, which penalties do not count.
    pub n_prompt: usize,
}
