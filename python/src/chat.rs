//! Conversations.

use std::path::PathBuf;

use akunu::{CancelFlag, ChatOptions, Message};
use pyo3::prelude::*;

use crate::failure::{Busy, raise};
use crate::lent::Home;
use crate::options::Options;
use crate::reply::{End, Reply, TellText, likely};
use crate::stream::Stream;

/// A conversation. The thread of a reply has it while the reply is under way.
#[pyclass(module = "akunu._akunu", frozen)]
pub struct Chat {
    own: Home<akunu::Chat>,
}

fn busy() -> PyErr {
    Busy::new_err(
        "a reply of this conversation is still under way: read it to its end, or cancel it",
    )
}

impl Chat {
    /// A conversation with a model.
    pub fn new(model: &akunu::Model, options: Options) -> Result<Chat, akunu::Error> {
        let grammar = options.grammar(model)?;
        let adapters = options.adapters(model)?;
        let speculation = options.speculation(model)?;
        let default = model.chat_options();
        let chat = model.chat_with(ChatOptions {
            sampling: options.sampling.over(default.sampling),
            loop_window: options.loop_window(default.loop_window),
            system: options.system,
            context: options.context,
            stop: options.stop,
            logprobs: options.logprobs,
            grammar,
            adapters,
            speculation,
            max_tokens: options.max_tokens.or(default.max_tokens),
            ..default
        })?;
        Ok(Chat {
            own: Home::new(chat),
        })
    }

    /// A reply, which a separate thread computes. That thread waits for the previous reply if it was cancelled or left.
    fn reply(
        &self,
        py: Python<'_>,
        begin: impl for<'c> FnOnce(&'c mut akunu::Chat) -> Result<akunu::Reply<'c>, akunu::Error>
        + Send
        + 'static,
    ) -> PyResult<Reply> {
        let cancel = CancelFlag::default();
        let mut lent = py
            .detach(|| self.own.lend(cancel.clone()))
            .ok_or_else(busy)?;
        let flag = cancel.clone();
        let stream = Stream::start(cancel, move |tell: &TellText| {
            let Some(chat) = lent.get() else {
                return Ok(End::default());
            };
            chat.options_mut().cancel = flag;
            let mut reply = begin(chat)?;
            while tell.is_wanted()
                && let Some(piece) = reply.next()
            {
                tell.piece(piece?);
            }
            let end = End {
                stop: reply.stop(),
                tokens: reply.tokens().iter().filter_map(likely).collect(),
            };
            drop(reply);
            // Whoever hears the end can ask again at once.
            drop(lent);
            Ok(end)
        })?;
        Ok(Reply(stream))
    }

    /// Does something with the conversation; waits for a reply that was cancelled or left.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut akunu::Chat) -> T + Send,
    ) -> PyResult<T> {
        py.detach(|| self.own.with(act)).ok_or_else(busy)
    }
}

#[pymethods]
impl Chat {
    /// Asks.
    fn ask(&self, py: Python<'_>, question: String) -> PyResult<Reply> {
        self.reply(py, move |chat| chat.ask(question))
    }

    /// Answers the messages so far.
    fn answer(&self, py: Python<'_>) -> PyResult<Reply> {
        self.reply(py, akunu::Chat::answer)
    }

    /// Answers the last question again, with another seed.
    fn regenerate(&self, py: Python<'_>) -> PyResult<Reply> {
        self.reply(py, akunu::Chat::regenerate)
    }

    /// Saves the conversation.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.with(py, |chat| chat.save(path))?.map_err(raise)
    }

    /// Replaces the conversation by a saved one.
    fn restore(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.with(py, |chat| chat.restore(path))?.map_err(raise)
    }

    /// Adds a message without a reply.
    fn say(&self, py: Python<'_>, role: String, text: String) -> PyResult<()> {
        self.with(py, |chat| chat.say(Message::new(role, text)))
    }

    /// Takes the last question back, with all that followed.
    fn undo(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let taken = self.with(py, akunu::Chat::undo)?;
        Ok(taken.and_then(|message| message.content.as_str().map(str::to_string)))
    }

    /// Forgets what was said, but not what the model was told before.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, akunu::Chat::reset)
    }

    /// What was said, as pairs of role and text.
    fn messages(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        self.with(py, |chat| {
            let text = |message: &Message| message.content.as_str().unwrap_or_default().to_string();
            let messages = chat.messages().iter();
            messages.map(|m| (m.role.clone(), text(m))).collect()
        })
    }
}

/// A conversation, or why there is none.
pub fn begin(model: &akunu::Model, options: Options) -> PyResult<Chat> {
    Chat::new(model, options).map_err(raise)
}
