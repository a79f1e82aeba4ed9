//! How likely tokens were.

/// Natural logarithms of the model's own probabilities: the softmax of its logits, before penalties, cuts and
/// temperature.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TokenLogprobs {
    /// That of the chosen token.
    pub chosen: f32,
    /// The most likely tokens and theirs, the most likely first.
    pub top: Vec<(u32, f32)>,
}
