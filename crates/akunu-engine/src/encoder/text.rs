//! Texts as an encoder takes them.

/// The tokens of a text, or of a pair of texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EncoderText {
    /// All tokens, those around the text included.
    pub tokens: Vec<u32>,
    /// How many of them are of the first text; the others are of the second one of a pair.
    pub n_first: usize,
}

/// A text that fits the model, and how much of it was cut off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CutText {
    /// The tokens that the model reads.
    pub text: EncoderText,
    /// Tokens that were cut off.
    pub n_cut: usize,
}
