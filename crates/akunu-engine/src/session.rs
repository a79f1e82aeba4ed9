//! A conversation: its tokens, what the KV cache knows of them, and what is computed from them.

mod content;
mod feed;
mod file;
mod observe;
mod plans;
mod save;
mod score;
mod shift;

use std::sync::Arc;

use akunu_kernels::{Plan, Ticket};

use self::content::Content;
pub use self::feed::{Fed, Reading, Watch};
pub use self::file::SavedSessionError;
pub use self::observe::Observed;
pub(crate) use self::plans::DecodePlans;
use self::plans::PrefillPlans;
use crate::error::EngineError;
use crate::generation::{GenerateOptions, Generation, Overflow};
use crate::memory::{Memory, Sizes};
use crate::model::Model;
use crate::sampling::Sampling;

/// How large a session is.
#[derive(Clone, Copy, Debug)]
pub struct SessionOptions {
    /// Positions that the KV cache holds; `None` for what the model was trained for, at most 4096.
    pub context: Option<u32>,
    /// Tokens that a prefill runs through the layers at once.
    pub chunk: u32,
}

impl Default for SessionOptions {
    fn default() -> SessionOptions {
        SessionOptions {
            context: None,
            chunk: 512,
        }
    }
}

/// A conversation.
pub struct Session<'m> {
    model: &'m Model,
    memory: Memory,
    sizes: Sizes,
    content: Content,
    prefills: PrefillPlans,
    decode: Option<Arc<DecodePlans>>,
}

/// The default context of models that were trained for more.
const DEFAULT_CONTEXT: u32 = 4096;

impl<'m> Session<'m> {
    pub(crate) fn new(
        model: &'m Model,
        options: SessionOptions,
    ) -> Result<Session<'m>, EngineError> {
        let config = model.config();
        let context = options
            .context
            .unwrap_or(config.context_length.min(DEFAULT_CONTEXT));
        let row = u64::from(config.head_dim.max(1));
        let max = (u64::from(u32::MAX) / row).min(1 << 24) as u32;
        if !(1..=max).contains(&context) {
            return Err(EngineError::ContextSize {
                found: context,
                max,
            });
        }
        let sizes = Sizes {
            context,
            chunk: options.chunk.clamp(1, context),
        };
        let mut device = model.device();
        let memory = Memory::allocate(config, model.rope_freqs(), sizes, device.as_mut())?;
        drop(device);
        let mut session = Session {
            model,
            memory,
            sizes,
            content: Content::default(),
            prefills: PrefillPlans::default(),
            decode: None,
        };
        // The first use of the weights is where a device lays them out and makes its pipelines: that is
        // part of getting ready, not of the first answer.
        session.decode_plans(Sampling::greedy())?;
        Ok(session)
    }

    /// The tokens of the session: what was given and what was generated.
    pub fn tokens(&self) -> &[u32] {
        &self.content.tokens
    }

    /// Positions that the cache holds at most.
    pub fn context(&self) -> u32 {
        self.sizes.context
    }

    /// The model.
    pub fn model(&self) -> &'m Model {
        self.model
    }

    /// Forgets all but the first `len` tokens: the way back from a full context, or from an answer that
    /// is not wanted. What the cache cannot keep of them goes through the model again when it is needed.
    pub fn truncate(&mut self, len: usize) {
        if len < self.content.tokens.len() {
            self.content.truncate(len);
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.content.truncate(0);
    }

    /// The logits after the last token.
    pub fn logits(&mut self) -> Result<Vec<f32>, EngineError> {
        self.settle()?;
        let mut logits = vec![0f32; self.model.config().vocab_size as usize];
        let bytes = bytemuck::cast_slice_mut(&mut logits);
        self.model.device().read(self.memory.logits, 0, bytes)?;
        Ok(logits)
    }

    /// Generates tokens after the present content.
    pub fn generate(
        &mut self,
        options: GenerateOptions,
    ) -> Result<Generation<'_, 'm>, EngineError> {
        let plans = self.ready_to_generate(&options)?;
        Ok(Generation::new(self, plans, options))
    }

    /// Computes the logits that the first token is chosen from; returns the plans for it and the others.
    pub(crate) fn ready_to_generate(
        &mut self,
        options: &GenerateOptions,
    ) -> Result<Arc<DecodePlans>, EngineError> {
        let plans = self.decode_plans(options.sampling)?;
        if let Overflow::Shift { keep } = options.overflow
            && self.content.tokens.len() > self.sizes.context as usize
        {
            self.shift(keep)?;
        }
        self.settle()?;
        Ok(plans)
    }

    /// Runs what is missing so that the logits are those after the last token.
    fn settle(&mut self) -> Result<(), EngineError> {
        if !self.content.has_logits {
            let tokens = self.content.tokens.clone();
            self.feed(&tokens)?;
        }
        Ok(())
    }

    /// The plan of a decode step that chooses with `sampling`: what it runs and, by
    /// [`Plan::cost`], what that costs.
    pub fn decode_plan(&mut self, sampling: Sampling) -> Result<&Plan, EngineError> {
        let plans = self.decode_plans(sampling)?;
        Ok(&self.decode.insert(plans).step)
    }

    fn check(&self, tokens: &[u32]) -> Result<(), EngineError> {
        let vocab_size = self.model.config().vocab_size;
        if let Some(&id) = tokens.iter().find(|&&id| id >= vocab_size) {
            return Err(EngineError::UnknownToken { id, vocab_size });
        }
        if tokens.is_empty() {
            return Err(EngineError::NothingToContinue);
        }
        if tokens.len() > self.sizes.context as usize {
            let context = self.sizes.context;
            return Err(EngineError::ContextFull {
                needed: tokens.len(),
                context,
            });
        }
        Ok(())
    }

    /// `len`, or 0 when the cache cannot go on from there.
    fn returnable(&self, len: usize) -> usize {
        let layers = &self.model.config().layers;
        let can = self.content.can_return_to(len, layers, &self.memory.layers);
        if can { len } else { 0 }
    }

    /// Chooses the token after the last one from the logits that are there. A penalty changes them.
    pub(crate) fn choose(&mut self, plans: &DecodePlans) -> Result<u32, EngineError> {
        self.content.has_logits = false;
        let len = self.content.tokens.len();
        self.model.device().run(&plans.choose, len as u32 - 1)?;
        let mut chosen = [0];
        self.read_history(len, &mut chosen)?;
        Ok(chosen[0])
    }

    /// Starts `n` decode steps in one submission. The device knows the token that was chosen last.
    pub(crate) fn start_decode(
        &mut self,
        plans: &DecodePlans,
        n: u32,
    ) -> Result<Ticket, EngineError> {
        self.will_write(n);
        let first = self.content.tokens.len() as u32;
        Ok(self.model.device().submit_chain(&plans.step, first, n)?)
    }

    /// Notes that the next `n` positions of the cache are written, even if nobody asks for the result.
    pub(crate) fn will_write(&mut self, n: u32) {
        let end = self.content.tokens.len() + n as usize;
        self.content.written = self.content.written.max(end);
    }

    /// A step of several sequences has put this token into the cache.
    pub(crate) fn stored(&mut self, token: u32) {
        self.content.extend(&[token]);
    }

    /// Waits for the `n` steps that were started last. `next` is the token that was chosen before them;
    /// returns the `n` tokens chosen after it.
    pub(crate) fn finish_decode(
        &mut self,
        ticket: Ticket,
        next: u32,
        n: u32,
    ) -> Result<Vec<u32>, EngineError> {
        self.model.device().wait(ticket)?;
        let first = self.content.tokens.len();
        let mut chosen = vec![0; n as usize];
        self.read_history(first + 1, &mut chosen)?;
        self.content.extend(&[next]);
        self.content.extend(&chosen[..n as usize - 1]);
        Ok(chosen)
    }

    /// Ends a generation. `last` was chosen last, so the cache does not know it yet; of the tokens up
    /// to it the last `unused` were never handed out.
    pub(crate) fn end_generation(&mut self, last: u32, unused: usize) {
        self.content.tokens.push(last);
        let len = self.content.tokens.len() - unused;
        self.content.truncate(len);
    }

    fn read_history(&self, first: usize, into: &mut [u32]) -> Result<(), EngineError> {
        let bytes = bytemuck::cast_slice_mut(into);
        Ok(self
            .model
            .device()
            .read(self.memory.history, 4 * first, bytes)?)
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        let mut device = self.model.device();
        for &buffer in &self.memory.all {
            device.release(buffer);
        }
    }
}
