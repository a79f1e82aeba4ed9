//! Conversations.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use akunu::{CancelFlag, ChatOptions, Message};
use pyo3::prelude::*;

use crate::failure::{Error, raise};
use crate::options::Options;
use crate::reply::{Reply, Told};

/// A conversation. The thread of a reply has it while the reply is under way.
#[pyclass(module = "akunu._akunu", frozen)]
pub struct Chat {
    own: Arc<Mutex<Option<akunu::Chat>>>,
    cancel: CancelFlag,
}

/// Puts a conversation back when a reply ends, however it ends.
struct Lent {
    chat: Option<akunu::Chat>,
    home: Arc<Mutex<Option<akunu::Chat>>>,
}

impl Drop for Lent {
    fn drop(&mut self) {
        *lock(&self.home) = self.chat.take();
    }
}

fn lock(own: &Mutex<Option<akunu::Chat>>) -> MutexGuard<'_, Option<akunu::Chat>> {
    own.lock().unwrap_or_else(PoisonError::into_inner)
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
            sampling: options.sampling(default.sampling),
            system: options.system,
            context: options.context,
            max_tokens: options.max_tokens.unwrap_or(default.max_tokens),
            cancel: cancel.clone(),
            ..default
        })?;
        Ok(Chat {
            own: Arc::new(Mutex::new(Some(chat))),
            cancel,
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut akunu::Chat) -> T) -> PyResult<T> {
        lock(&self.own).as_mut().map(act).ok_or_else(busy)
    }
}

#[pymethods]
impl Chat {
    /// Asks; the reply computes in a thread of its own.
    fn ask(&self, question: String) -> PyResult<Reply> {
        let chat = lock(&self.own).take().ok_or_else(busy)?;
        let mut lent = Lent {
            chat: Some(chat),
            home: Arc::clone(&self.own),
        };
        self.cancel.reset();
        Reply::start(self.cancel.clone(), move |tell| {
            let Some(chat) = lent.chat.as_mut() else {
                return Ok(None);
            };
            let mut reply = chat.ask(question)?;
            for piece in &mut reply {
                if tell.send(Told::Piece(piece?)).is_err() {
                    return Ok(None);
                }
            }
            let stop = reply.stop();
            drop(reply);
            // Whoever hears the end can ask again at once.
            drop(lent);
            Ok(stop)
        })
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
