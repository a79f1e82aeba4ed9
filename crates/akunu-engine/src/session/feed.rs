//! Reading: what is new of a prompt goes through the model, chunk by chunk.
//!
//! ```text
//! prompt   known already | chunk | chunk | rest
//!                        ^ watch ^ watch ^ watch
//! ```
//!
//! A long prompt takes seconds or minutes. Before each chunk a caller may be told how far the reading
//! is and may end it; what was read by then stays in the session, so that the same prompt goes on from
//! there when it is fed again.

use std::ops::ControlFlow;

use akunu_kernels::Plan;

use super::Session;
use crate::error::EngineError;

/// What [`Session::feed`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fed {
    /// Tokens that the cache held already.
    pub reused: usize,
    /// Tokens that went through the model.
    pub processed: usize,
}

/// How far the reading of a prompt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Tokens that have gone through the model.
    pub done: usize,
    /// Tokens that have to: those that the session did not hold already.
    pub total: usize,
}

/// Asked before each chunk; [`ControlFlow::Break`] ends the reading with [`EngineError::Cancelled`].
pub type Watch<'a> = dyn FnMut(Reading) -> ControlFlow<()> + 'a;

impl Session<'_> {
    /// Makes `tokens` the whole content of the session. Only what follows the longest common beginning
    /// with the present content goes through the model.
    pub fn feed(&mut self, tokens: &[u32]) -> Result<Fed, EngineError> {
        self.feed_watched(tokens, &mut |_| ControlFlow::Continue(()))
    }

    /// Like [`Session::feed`], with `watch` asked before each chunk of [`SessionOptions::chunk`] tokens.
    ///
    /// [`SessionOptions::chunk`]: crate::SessionOptions::chunk
    pub fn feed_watched(
        &mut self,
        tokens: &[u32],
        watch: &mut Watch<'_>,
    ) -> Result<Fed, EngineError> {
        self.check(tokens)?;
        let reused = if self.content.has_logits && self.content.tokens == tokens {
            tokens.len()
        } else {
            // At least the last token runs: the logits after it are wanted.
            self.returnable(self.content.common(tokens).min(tokens.len() - 1))
        };
        if reused < tokens.len() {
            self.content.truncate(reused);
            self.run(&tokens[reused..], watch)?;
        }
        Ok(Fed {
            reused,
            processed: tokens.len() - reused,
        })
    }

    /// Runs tokens after the present content, chunk by chunk.
    fn run(&mut self, tokens: &[u32], watch: &mut Watch<'_>) -> Result<(), EngineError> {
        let size = self.sizes.chunk as usize;
        let n_chunks = tokens.len().div_ceil(size);
        for (at, chunk) in tokens.chunks(size).enumerate() {
            ask(watch, at * size, tokens.len())?;
            let plan = self.prefill_plan(chunk.len() as u32, at + 1 == n_chunks)?;
            self.run_chunk(&plan, chunk)?;
        }
        self.content.has_logits = true;
        Ok(())
    }

    /// Runs one chunk after the present content.
    pub(super) fn run_chunk(&mut self, plan: &Plan, chunk: &[u32]) -> Result<(), EngineError> {
        let first = self.content.tokens.len();
        // Even a run that fails may have written to the cache.
        self.will_write(chunk.len() as u32);
        let mut device = self.model.device();
        let bytes = bytemuck::cast_slice(chunk);
        device.write(self.memory.prompt, 0, bytes)?;
        device.write(self.memory.history, 4 * first, bytes)?;
        device.run(plan, first as u32)?;
        drop(device);
        self.content.extend(chunk);
        Ok(())
    }
}

/// An error when the watch ends the reading.
pub(super) fn ask(watch: &mut Watch<'_>, done: usize, total: usize) -> Result<(), EngineError> {
    match watch(Reading { done, total }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(EngineError::Cancelled { done, total }),
    }
}
