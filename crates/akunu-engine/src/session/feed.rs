//! Reading: what is new of a prompt goes through the model, chunk by chunk.
//!
//! ```text
//! prompt   known already | chunk | chunk | rest
//!                        ^ watch ^ watch ^ watch
//! ```
//!
//! A long prompt takes seconds or minutes. Before each chunk the caller's `watch` is called with the progress
//! and may end the reading; a [`CancelFlag`] ends it within a chunk, on a device that can stop in the middle of one. What was
//! read by then stays in the session, in whole chunks, so that feeding the same prompt again continues from there.

use std::ops::ControlFlow;

use akunu_program::DeviceError;

use super::state::Session;
use crate::cancel::CancelFlag;
use crate::error::EngineError;
use crate::images::{Content, Prompt};
use crate::runtime::Kind;

/// What [`Session::feed`] did.
///
/// ```no_run
/// # fn example(session: &mut akunu_engine::Session, prompt: &[u32]) -> Result<(), akunu_engine::EngineError> {
/// let fed = session.feed(prompt)?;
/// println!("{} tokens were there already, {} were read", fed.reused, fed.processed);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fed {
    /// Tokens that the cache held already.
    pub reused: usize,
    /// Tokens that went through the model.
    pub processed: usize,
}

impl Fed {
    /// As many tokens, all of which the cache held already.
    pub fn reused(reused: usize) -> Fed {
        Fed {
            reused,
            processed: 0,
        }
    }
}

/// How far the reading of a prompt is.
///
/// ```no_run
/// # fn example(session: &mut akunu_engine::Session, prompt: &[u32]) -> Result<(), akunu_engine::EngineError> {
/// session.feed_watched(prompt, &mut |reading| {
///     println!("{} of {} tokens", reading.done, reading.total);
///     std::ops::ControlFlow::Continue(())
/// })?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reading {
    /// Tokens that have gone through the model.
    pub done: usize,
    /// Tokens that have to: those that the session did not hold already.
    pub total: usize,
}

/// Called before each chunk; [`ControlFlow::Break`] ends the reading with [`EngineError::Cancelled`].
///
/// ```no_run
/// use std::ops::ControlFlow;
/// # fn example(session: &mut akunu_engine::Session, prompt: &[u32]) -> Result<(), akunu_engine::EngineError> {
/// // Ends the reading after ten seconds.
/// let begin = std::time::Instant::now();
/// session.feed_watched(prompt, &mut |_| match begin.elapsed().as_secs() {
///     0..10 => ControlFlow::Continue(()),
///     _ => ControlFlow::Break(()),
/// })?;
/// # Ok(())
/// # }
/// ```
pub type Watch<'a> = dyn FnMut(Reading) -> ControlFlow<()> + 'a;

impl Session {
    /// Makes `tokens` the whole content of the session. Only what follows the longest common beginning
    /// with the present content goes through the model.
    pub fn feed(&mut self, tokens: &[u32]) -> Result<Fed, EngineError> {
        self.feed_watched(tokens, &mut |_| ControlFlow::Continue(()))
    }

    /// Like [`Session::feed`]; `watch` is called before each chunk of [`SessionOptions::chunk`] tokens.
    ///
    /// [`SessionOptions::chunk`]: crate::SessionOptions::chunk
    pub fn feed_watched(
        &mut self,
        tokens: &[u32],
        watch: &mut Watch<'_>,
    ) -> Result<Fed, EngineError> {
        self.feed_until(tokens, &CancelFlag::default(), watch)
    }

    /// Like [`Session::feed_watched`]; it ends with [`EngineError::Cancelled`] soon after another thread has set `cancel`. The
    /// CPU device stops between two kernels, a GPU between two command buffers, any other device between two chunks.
    pub fn feed_until(
        &mut self,
        tokens: &[u32],
        cancel: &CancelFlag,
        watch: &mut Watch<'_>,
    ) -> Result<Fed, EngineError> {
        self.feed_content(&tokens.into(), cancel, watch)
    }

    /// Like [`Session::feed`], with images among the tokens.
    pub fn feed_prompt(&mut self, prompt: impl Into<Prompt>) -> Result<Fed, EngineError> {
        let watch = &mut |_| ControlFlow::Continue(());
        self.feed_prompt_until(prompt, &CancelFlag::default(), watch)
    }

    /// Like [`Session::feed_until`], with images among the tokens.
    pub fn feed_prompt_until(
        &mut self,
        prompt: impl Into<Prompt>,
        cancel: &CancelFlag,
        watch: &mut Watch<'_>,
    ) -> Result<Fed, EngineError> {
        let content = self.content_of(prompt.into())?;
        self.feed_content(&content, cancel, watch)
    }

    /// The content that a prompt is, if this session can have it.
    pub(crate) fn content_of(&self, prompt: Prompt) -> Result<Content, EngineError> {
        self.check(&prompt.tokens)?;
        Ok(Content::of(prompt, self.model.config(), self.chunk())?)
    }

    /// Makes some content, whose images were checked, that of the session.
    pub(crate) fn feed_content(
        &mut self,
        content: &Content,
        cancel: &CancelFlag,
        watch: &mut Watch<'_>,
    ) -> Result<Fed, EngineError> {
        let tokens = &content.tokens;
        self.check(tokens)?;
        let has_all = self.sequence.is(content) && self.model.runtime().has_logits(&self.sequence);
        let reused = if has_all {
            tokens.len()
        } else {
            self.reuse(content)
        };
        self.run(&tokens[reused..], cancel, watch)?;
        Ok(Fed {
            reused,
            processed: tokens.len() - reused,
        })
    }

    /// Keeps, or takes over from others, the longest beginning of some content that pages hold; returns its length. At
    /// least the last token is left: the logits after it are wanted.
    pub(crate) fn reuse(&mut self, content: &Content) -> usize {
        let mut runtime = self.model.runtime();
        let sequence = &mut self.sequence;
        let most = content.tokens.len() - 1;
        let own = sequence.common(content).min(most);
        let own = runtime.returnable(sequence, own);
        runtime.truncate(sequence, own);
        runtime.adopt(sequence, content, most)
    }

    /// Takes the last token off, for a step that reads it again. Where the pages do not reach that far, and where it is a row
    /// of an image, all content is returned instead: it is to be read.
    pub(crate) fn take_last(&mut self) -> Result<u32, Content> {
        let last = self.sequence.tokens.len() - 1;
        if self.sequence.images.at(last).is_some() {
            let content = self.sequence.content();
            self.reuse(&content);
            return Err(content);
        }
        let mut runtime = self.model.runtime();
        let sequence = &mut self.sequence;
        let at = runtime.returnable(sequence, sequence.cached.min(last));
        if at == last {
            let token = sequence.tokens[last];
            runtime.truncate(sequence, last);
            return Ok(token);
        }
        let content = sequence.content();
        runtime.truncate(sequence, at);
        sequence.images.clone_from(&content.images);
        Err(content)
    }

    /// Runs tokens after the present content, chunk by chunk.
    fn run(
        &mut self,
        tokens: &[u32],
        cancel: &CancelFlag,
        watch: &mut Watch<'_>,
    ) -> Result<(), EngineError> {
        let (mut done, total) = (0, tokens.len());
        while done < total {
            if cancel.is_set() {
                return Err(EngineError::Cancelled { done, total });
            }
            ask(watch, done, total)?;
            let size = self.chunk().min(total - done);
            let end = done + self.sequence.whole_images(size);
            let kind = if end == total {
                Kind::Logits
            } else {
                Kind::Layers
            };
            self.read(&tokens[done..end], kind, cancel)
                .map_err(|error| match error {
                    EngineError::Device(DeviceError::Stopped) => {
                        EngineError::Cancelled { done, total }
                    }
                    other => other,
                })?;
            done = end;
        }
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
