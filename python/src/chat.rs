//! Conversations.

use akunu::{CancelFlag, ChatOptions, Message};
use pyo3::prelude::*;

use crate::failure::{Error, raise};
use crate::lent::Home;
use crate::options::Options;
use crate::reply::{Reply, TellText};
use crate::stream::Stream;

/// A conversation. The thread of a reply has it while the reply is under way.
#[pyclass(module = "akunu._akunu", frozen)]
pub struct Chat {
    own: Home<akunu::Chat>,
    cancel: CancelFlag,
}

fn busy() -> PyErr {
    Error::new_err(
        "a reply of this conversation is still under way: read it to its end, or cancel it",
    )
}

impl Chat {
    /// A conversation with a model.
    pub fn new(model: &akunu::Model, options: Options) -> Result<Chat, akunu::Error> {
        let default = model.chat_options();
        let cancel = CancelFlag::default();
        let chat = model.chat_with(ChatOptions {
            sampling: options.sampling.over(default.sampling),
            loop_window: options.loop_window(default.loop_window),
            system: options.system,
            context: options.context,
            max_tokens: options.max_tokens.or(default.max_tokens),
            cancel: cancel.clone(),
            ..default
        })?;
        Ok(Chat {
            own: Home::new(chat),
            cancel,
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut akunu::Chat) -> T) -> PyResult<T> {
        self.own.with(act).ok_or_else(busy)
    }
}

#[pymethods]
impl Chat {
    /// Asks; the reply computes in a thread of its own.
    fn ask(&self, question: String) -> PyResult<Reply> {
        let mut lent = self.own.lend().ok_or_else(busy)?;
        self.cancel.reset();
        let stream = Stream::start(self.cancel.clone(), move |tell: &TellText| {
            let Some(chat) = lent.get() else {
                return Ok(None);
            };
            let mut reply = chat.ask(question)?;
            for piece in &mut reply {
                if !tell.piece(piece?) {
                    return Ok(None);
                }
            }
            let stop = reply.stop();
            drop(reply);
            // Whoever hears the end can ask again at once.
            drop(lent);
            Ok(stop)
        })?;
        Ok(Reply(stream))
    }

    /// Adds a message without a reply.
    fn say(&self, role: String, text: String) -> PyResult<()> {
        self.with(|chat| chat.say(Message::new(role, text)))
    }

    /// Takes the last question back, with all that followed.
    fn undo(&self) -> PyResult<Option<String>> {
        let taken = self.with(akunu::Chat::undo)?;
        Ok(taken.and_then(|message| message.content.as_str().map(str::to_string)))
    }

    /// Forgets what was said, but not what the model was told before.
    fn reset(&self) -> PyResult<()> {
        self.with(akunu::Chat::reset)
    }

    /// What was said, as pairs of role and text.
    fn messages(&self) -> PyResult<Vec<(String, String)>> {
        self.with(|chat| {
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
