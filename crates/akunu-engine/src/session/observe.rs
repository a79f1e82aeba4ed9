//! What the matrices of the layers are multiplied with, for importance matrices.
//!
//! The program of a prompt is cut before each product `y = W x`. The parts run one after another, and before a part
//! runs its `x` is read from the device. So any device can be observed, and the program stays as it is.

use super::state::Session;
use crate::cancel::CancelFlag;
use crate::error::EngineError;
use crate::runtime::{Kind, Observed};

impl Session {
    /// Runs `tokens` through the layers and shows `see` the inputs of each of their matrices. The token
    /// embedding and the output matrix are not shown; nor is a last chunk of a single token, for which
    /// some products have no input of their own in memory.
    ///
    /// It begins with an empty session and leaves it empty.
    pub fn observe(
        &mut self,
        tokens: &[u32],
        see: &mut dyn FnMut(Observed),
    ) -> Result<(), EngineError> {
        self.clear();
        self.check(tokens)?;
        for chunk in tokens.chunks(self.chunk()) {
            let mut runtime = self.model.runtime();
            if chunk.len() == 1 {
                runtime.read_prompt(
                    &mut self.sequence,
                    chunk,
                    Kind::Layers,
                    &CancelFlag::default(),
                )?;
            } else {
                runtime.observe(&mut self.sequence, chunk, see)?;
            }
        }
        self.clear();
        Ok(())
    }
}
