//! A session: its tokens, and the pages that hold their keys and values.

use std::ops::ControlFlow;

use akunu_arch as arch;
use akunu_types::KvFormat;

use crate::adapter::Adapters;
use crate::cancel::CancelFlag;
use crate::error::{Bytes, EngineError};
use crate::model::Model;
use crate::runtime::{Kind, sequence_bytes};
use crate::sequence::Sequence;

/// How large a session is.
///
/// Later versions may have further fields: end a value with `..SessionOptions::default()`.
///
/// ```no_run
/// use akunu_engine::SessionOptions;
/// # fn example(model: &akunu_engine::Model) -> Result<(), akunu_engine::EngineError> {
/// let session = model.session(SessionOptions { context: Some(4096), ..SessionOptions::default() })?;
/// assert_eq!(session.context(), 4096);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SessionOptions {
    /// Tokens that it holds at most; `None` for what the model was trained for, at most 4096.
    pub context: Option<u32>,
    /// Tokens that a prefill runs through the layers at once.
    pub chunk: u32,
    /// Makes room for further options.
    #[doc(hidden)]
    pub _more: (),
}

impl Default for SessionOptions {
    fn default() -> SessionOptions {
        SessionOptions {
            context: None,
            chunk: 512,
            _more: (),
        }
    }
}

impl SessionOptions {
    /// Bytes of memory that one such session needs for its keys and values. `None` for a context that is not possible, and
    /// for heads that the format does not take.
    pub fn kv_bytes(&self, config: &arch::Model, format: KvFormat) -> Option<u64> {
        let (context, chunk) = self.sizes(config).ok()?;
        let takes = config
            .attention()
            .all(|attention| format.takes(attention.head_dim));
        takes.then(|| sequence_bytes(config, format, context, chunk))
    }

    /// The context and the chunk for a model of this shape.
    fn sizes(&self, config: &arch::Model) -> Result<(u32, u32), EngineError> {
        let default = config.context_length.min(DEFAULT_CONTEXT);
        let context = self.context.unwrap_or(default);
        let row = u64::from(config.max_head_dim().max(1));
        let max = (u64::from(u32::MAX) / row).min(1 << 24) as u32;
        if !(1..=max).contains(&context) {
            return Err(EngineError::ContextSize {
                found: context,
                max,
            });
        }
        Ok((context, self.chunk.clamp(1, context)))
    }
}

/// A conversation. It has pages for what it holds, and nothing else of its own.
///
/// ```no_run
/// use akunu_engine::{GenerateOptions, SessionOptions};
/// # fn example(model: &akunu_engine::Model, prompt: &[u32]) -> Result<(), akunu_engine::EngineError> {
/// let mut session = model.session(SessionOptions::default())?;
/// session.feed(prompt)?;
/// let mut other = session.fork(); // copies nothing until one of them writes
/// for token in session.generate(GenerateOptions::default())?.take(20) {
///     print!("{}", token?.text);
/// }
/// session.save("talk.session")?;
/// # other.clear();
/// # Ok(())
/// # }
/// ```
pub struct Session {
    pub(super) model: Model,
    pub(crate) sequence: Sequence,
    context: u32,
    chunk: u32,
}

/// The default context of models that were trained for more.
const DEFAULT_CONTEXT: u32 = 4096;

impl Model {
    /// A conversation with this model.
    pub fn session(&self, options: SessionOptions) -> Result<Session, EngineError> {
        Session::new(self.clone(), options)
    }
}

impl Session {
    fn new(model: Model, options: SessionOptions) -> Result<Session, EngineError> {
        let (context, chunk) = options.sizes(model.config())?;
        check_memory(&model, context, chunk)?;
        let mut runtime = model.runtime();
        runtime.want_rows(chunk)?;
        runtime.want_positions(context)?;
        runtime.want_slots(context)?;
        runtime.want_pages(context as usize, chunk as usize)?;
        let sequence = runtime.new_sequence();
        drop(runtime);
        Ok(Session {
            model,
            sequence,
            context,
            chunk,
        })
    }

    /// The tokens of the session: what was given and what was generated.
    pub fn tokens(&self) -> &[u32] {
        &self.sequence.tokens
    }

    /// Tokens that it holds at most.
    pub fn context(&self) -> u32 {
        self.context
    }

    /// Tokens that a prefill runs through the layers at once.
    pub(crate) fn chunk(&self) -> usize {
        self.chunk as usize
    }

    /// The model that this session belongs to.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Another session with the same content. What they have in common they share until one of them changes it.
    pub fn fork(&self) -> Session {
        let sequence = self.model.runtime().fork(&self.sequence);
        Session {
            model: self.model.clone(),
            sequence,
            ..*self
        }
    }

    /// Forgets all but the first `len` tokens: the way back from a full context, or from an answer that
    /// is not wanted. What the pages cannot keep of them goes through the model again when it is needed.
    pub fn truncate(&mut self, len: usize) {
        self.model.runtime().truncate(&mut self.sequence, len);
    }

    /// Forgets all tokens and releases their pages; shared pages stay with their other owners.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// The adapters that it has.
    pub fn adapters(&self) -> &Adapters {
        self.sequence.adapters()
    }

    /// Which adapters it has from now on. If they are others than before, its content is forgotten: what was computed
    /// with other adapters is of no use.
    pub fn set_adapters(&mut self, adapters: &Adapters) -> Result<(), EngineError> {
        adapters.check(self.model.loaded())?;
        let mut runtime = self.model.runtime();
        runtime.set_adapters(&mut self.sequence, adapters);
        Ok(())
    }

    /// The logits after the last token.
    pub fn logits(&mut self) -> Result<Vec<f32>, EngineError> {
        if self.sequence.tokens.is_empty() {
            return Err(EngineError::NothingToContinue);
        }
        loop {
            // Whether they are there is asked and they are read in one go: other threads step too.
            let runtime = self.model.runtime();
            if runtime.has_logits(&self.sequence) {
                let mut logits = vec![0f32; runtime.vocab_size() as usize];
                runtime.read_logits(0, &mut logits)?;
                return Ok(logits);
            }
            drop(runtime);
            let content = self.sequence.content();
            let watch = &mut |_| ControlFlow::Continue(());
            self.feed_content(&content, &CancelFlag::default(), watch)?;
        }
    }

    pub(super) fn check(&self, tokens: &[u32]) -> Result<(), EngineError> {
        let vocab_size = self.model.config().vocab_size;
        if let Some(&id) = tokens.iter().find(|&&id| id >= vocab_size) {
            return Err(EngineError::UnknownToken { id, vocab_size });
        }
        if tokens.is_empty() {
            return Err(EngineError::NothingToContinue);
        }
        if tokens.len() > self.context as usize {
            let context = self.context;
            return Err(EngineError::ContextFull {
                needed: tokens.len(),
                context,
            });
        }
        Ok(())
    }

    /// Whether these tokens could be its content.
    pub(crate) fn check_prompt(&self, tokens: &[u32]) -> Result<(), EngineError> {
        self.check(tokens)
    }

    /// Runs a piece of a prompt after the present content.
    pub(super) fn read(
        &mut self,
        tokens: &[u32],
        kind: Kind,
        cancel: &CancelFlag,
    ) -> Result<(), EngineError> {
        let mut runtime = self.model.runtime();
        runtime.read_prompt(&mut self.sequence, tokens, kind, cancel)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.model.runtime().free(&mut self.sequence);
    }
}

/// Refuses a context that needs more memory than the device has left.
fn check_memory(model: &Model, context: u32, chunk: u32) -> Result<(), EngineError> {
    let config = model.config();
    let mut runtime = model.runtime();
    let cache = sequence_bytes(config, model.kv_format(), context, chunk);
    let scratch = runtime.scratch_bytes(chunk);
    let Some(free) = runtime.device().memory_limit() else {
        return Ok(());
    };
    // What the model's sessions share already needs no further memory.
    if cache + scratch <= free + runtime.shared_bytes() {
        return Ok(());
    }
    Err(EngineError::ContextMemory {
        context,
        chunk,
        cache: Bytes(cache),
        scratch: Bytes(scratch),
        available: Bytes(free),
    })
}
