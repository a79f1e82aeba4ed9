//! The meaning of a text as a vector: the normalised last hidden state of its last token.

use super::state::Session;
use crate::cancel::CancelFlag;
use crate::error::EngineError;
use crate::runtime::Kind;

impl Session {
    /// The hidden state after the last of these tokens, normalised as the output layer sees it. It begins with an empty
    /// session and leaves it with these tokens.
    pub fn embed(&mut self, tokens: &[u32]) -> Result<Vec<f32>, EngineError> {
        self.check(tokens)?;
        self.clear();
        let (last, chunk) = (tokens.len().saturating_sub(1) / self.chunk(), self.chunk());
        for (at, chunk) in tokens.chunks(chunk).enumerate() {
            let kind = if at == last {
                Kind::Hidden
            } else {
                Kind::Layers
            };
            self.read(chunk, kind, &CancelFlag::default())?;
        }
        self.model.runtime().read_hidden()
    }
}
