//! How likely tokens were.

/// Natural logarithms of the model's own probabilities: the softmax of its logits, before penalties, cuts and
/// temperature.
///
/// ```no_run
/// use akunu_engine::GenerateOptions;
/// # fn example(session: &mut akunu_engine::Session) -> Result<(), akunu_engine::EngineError> {
/// let options = GenerateOptions { logprobs: Some(3), ..GenerateOptions::default() };
/// for token in session.generate(options)? {
///     let token = token?;
///     if let Some(logprobs) = token.logprobs {
///         println!("{:?} {:.2}, best: {:?}", token.text, logprobs.chosen, logprobs.top);
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TokenLogprobs {
    /// That of the chosen token.
    pub chosen: f32,
    /// The most likely tokens and theirs, the most likely first.
    pub top: Vec<(u32, f32)>,
}
