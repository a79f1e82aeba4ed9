//! What the block for multi-token prediction guesses behind a session, to be compared with other programs.

use akunu_program::Choose;

use super::state::Session;
use crate::error::EngineError;
use crate::rule::Rule;
use crate::runtime::Guessing;

impl Session {
    /// The logits of the block for multi-token prediction after the token `next` behind those of the session, and after each of the
    /// `n - 1` most likely tokens from there on. The session stays as it is.
    #[doc(hidden)]
    pub fn mtp_logits(&mut self, next: u32, n: u32) -> Result<Vec<Vec<f32>>, EngineError> {
        let path = || self.model.path().to_path_buf();
        let room = self.context() as usize - self.sequence.cached;
        let needed = self.sequence.cached + n as usize;
        match (self.model.config().mtp.is_some(), room >= n as usize) {
            (false, _) => return Err(EngineError::NoMtp { path: path() }),
            (true, false) => {
                let context = self.context();
                return Err(EngineError::ContextFull { needed, context });
            }
            (true, true) => {}
        }
        let mut runtime = self.model.runtime();
        let mut found = Vec::with_capacity(n as usize);
        for rounds in 1..=n {
            let mut of = [Guessing {
                sequence: &mut self.sequence,
                rule: &Rule::default(),
                next,
            }];
            runtime.guess(&mut of, Choose::Best, rounds)?;
            let mut logits = vec![0.0; runtime.vocab_size() as usize];
            runtime.read_logits(0, &mut logits)?;
            found.push(logits);
        }
        Ok(found)
    }
}
