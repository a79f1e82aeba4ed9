//! A conversation: the tokens that the KV cache holds, and what is computed from them.

use std::collections::HashMap;

use akunu_kernels::Plan;

use crate::builder::Builder;
use crate::error::EngineError;
use crate::generation::{GenerateOptions, Generation};
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

/// What [`Session::feed`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fed {
    /// Tokens that the cache held already.
    pub reused: usize,
    /// Tokens that went through the model.
    pub processed: usize,
}

/// A conversation.
pub struct Session<'m> {
    model: &'m Model,
    memory: Memory,
    sizes: Sizes,
    /// The tokens whose keys and values are in the cache.
    tokens: Vec<u32>,
    /// Positions beyond `tokens` that the cache was written at: a ring may have lost older ones.
    written: usize,
    prefills: HashMap<(u32, bool), Plan>,
    decode: Option<(Sampling, Plan, Plan)>,
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
        Ok(Session {
            model,
            memory,
            sizes,
            tokens: Vec::new(),
            written: 0,
            prefills: HashMap::new(),
            decode: None,
        })
    }

    /// The tokens that the cache holds.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Positions that the cache holds at most.
    pub fn context(&self) -> u32 {
        self.sizes.context
    }

    /// The model.
    pub fn model(&self) -> &'m Model {
        self.model
    }

    /// Makes `tokens` the whole content of the session. Only what follows the longest common beginning
    /// with the present content goes through the model.
    pub fn feed(&mut self, tokens: &[u32]) -> Result<Fed, EngineError> {
        self.check(tokens)?;
        let common = self
            .tokens
            .iter()
            .zip(tokens)
            .take_while(|(a, b)| a == b)
            .count();
        // At least the last token runs: the logits after it are wanted.
        let common = common.min(tokens.len().saturating_sub(1));
        let reused = if self.can_return_to(common) {
            common
        } else {
            0
        };
        self.tokens.truncate(reused);
        self.run(&tokens[reused..])?;
        Ok(Fed {
            reused,
            processed: tokens.len() - reused,
        })
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.tokens.clear();
        self.written = 0;
    }

    /// The logits after the last token.
    pub fn logits(&mut self) -> Result<Vec<f32>, EngineError> {
        if self.tokens.is_empty() {
            return Err(EngineError::NothingToContinue);
        }
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
        if self.tokens.is_empty() {
            return Err(EngineError::NothingToContinue);
        }
        options.sampling.check()?;
        self.prepare_decode(options.sampling)?;
        Ok(Generation::new(self, options))
    }

    /// The plan of a decode step that chooses with `sampling`: what it runs and, by
    /// [`Plan::cost`], what that costs.
    pub fn decode_plan(&mut self, sampling: Sampling) -> Result<&Plan, EngineError> {
        sampling.check()?;
        self.prepare_decode(sampling)?;
        match &self.decode {
            Some((_, _, step)) => Ok(step),
            None => unreachable!("it was just prepared"),
        }
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

    /// Whether the cache still has all that position `len` would look at. A layer with a window keeps
    /// a ring: what was written far beyond `len` has overwritten what lies before it.
    fn can_return_to(&self, len: usize) -> bool {
        let lost = self.written - len.min(self.written);
        self.model
            .config()
            .layers
            .iter()
            .zip(&self.memory.layers)
            .all(|(layer, cache)| {
                let Some(window) = layer.window else {
                    return true;
                };
                self.written <= cache.slots as usize
                    || lost + window as usize <= cache.slots as usize
            })
    }

    /// Runs tokens after the present content, chunk by chunk.
    fn run(&mut self, tokens: &[u32]) -> Result<(), EngineError> {
        let n_chunks = tokens.len().div_ceil(self.sizes.chunk as usize);
        for (at, chunk) in tokens.chunks(self.sizes.chunk as usize).enumerate() {
            let (rows, last) = (chunk.len() as u32, at + 1 == n_chunks);
            self.prepare_prefill(rows, last)?;
            let first = self.tokens.len();
            let mut device = self.model.device();
            let bytes = bytemuck::cast_slice(chunk);
            device.write(self.memory.prompt, 0, bytes)?;
            device.write(self.memory.history, 4 * first, bytes)?;
            if let Some(plan) = self.prefills.get(&(rows, last)) {
                device.run(plan, first as u32)?;
            }
            drop(device);
            self.tokens.extend(chunk);
            self.written = self.written.max(self.tokens.len());
        }
        Ok(())
    }

    /// The plan for `rows` tokens, with the logits of the last one when they are wanted.
    fn prepare_prefill(&mut self, rows: u32, with_logits: bool) -> Result<(), EngineError> {
        if self.prefills.contains_key(&(rows, with_logits)) {
            return Ok(());
        }
        let mut device = self.model.device();
        let mut builder = self.builder(device.as_mut(), rows);
        builder.layers(self.memory.prompt)?;
        if with_logits {
            builder.logits(rows - 1)?;
        }
        let plan = Plan::check(builder.dispatches, self.sizes.context - rows)?;
        drop(device);
        self.prefills.insert((rows, with_logits), plan);
        Ok(())
    }

    /// The plan that chooses a token from logits, and the one that also computes them.
    fn prepare_decode(&mut self, sampling: Sampling) -> Result<(), EngineError> {
        if self
            .decode
            .as_ref()
            .is_some_and(|(has, ..)| *has == sampling)
        {
            return Ok(());
        }
        let last = self.sizes.context - 1;
        let mut device = self.model.device();
        let mut builder = self.builder(device.as_mut(), 1);
        sampling.write(&mut builder)?;
        let choose = Plan::check(builder.dispatches, last)?;
        let mut builder = self.builder(device.as_mut(), 1);
        builder.layers(self.memory.token)?;
        builder.logits(0)?;
        sampling.write(&mut builder)?;
        let step = Plan::check(builder.dispatches, last)?;
        log_kernels(&step);
        drop(device);
        self.decode = Some((sampling, choose, step));
        Ok(())
    }

    fn builder<'a>(&'a self, device: &'a mut dyn akunu_kernels::Device, rows: u32) -> Builder<'a> {
        Builder {
            device,
            config: self.model.config(),
            weights: self.model.weights(),
            memory: &self.memory,
            context: self.sizes.context,
            rows,
            dispatches: Vec::new(),
        }
    }

    /// Chooses the token after the last one from the logits that are there.
    pub(crate) fn choose(&mut self) -> Result<u32, EngineError> {
        let position = self.tokens.len() as u32 - 1;
        if let Some((_, choose, _)) = &self.decode {
            self.model.device().run(choose, position)?;
        }
        let mut chosen = [0];
        self.read_history(self.tokens.len(), &mut chosen)?;
        Ok(chosen[0])
    }

    /// Runs `n` decode steps in one submission. `next` is the token that was chosen last; returns the
    /// `n` tokens chosen after it.
    pub(crate) fn decode(&mut self, next: u32, n: u32) -> Result<Vec<u32>, EngineError> {
        let first = self.tokens.len();
        if let Some((_, _, step)) = &self.decode {
            self.model.device().run_chain(step, first as u32, n)?;
        }
        let mut chosen = vec![0; n as usize];
        self.read_history(first + 1, &mut chosen)?;
        self.tokens.push(next);
        self.tokens.extend(&chosen[..n as usize - 1]);
        self.written = self.written.max(self.tokens.len());
        Ok(chosen)
    }

    /// Forgets all but the first `len` tokens.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.tokens.truncate(len);
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
        for buffer in self.memory.buffers() {
            device.release(buffer);
        }
    }
}

/// Says once which kernels a model decodes with.
fn log_kernels(plan: &Plan) {
    let mut kernels: Vec<String> = Vec::new();
    for dispatch in plan.dispatches() {
        let name = dispatch.kernel.row().name();
        if !kernels.contains(&name) {
            kernels.push(name);
        }
    }
    tracing::info!(
        dispatches = plan.dispatches().len(),
        kernels = kernels.join(" "),
        "decode plan"
    );
}
