//! A conversation: messages in, answers out.

use std::ffi::{c_char, c_void};
use std::sync::{Mutex, PoisonError};

use akunu::{CancelFlag, ChatOptions, Message, Model, Reply};

use crate::border::{self, AkunuOnText, Listener, Room};
use crate::handles::{self, Thing};
use crate::model::AkunuModel;
use crate::options::{self, AkunuOptions, Values};
use crate::status::{AkunuStatus, Failure, call};
use crate::stream::{AkunuStop, only, stop_of};

/// A conversation with a model. It takes one call at a time; only akunu_chat_cancel may be called meanwhile.
pub struct AkunuChat(());

struct Chat {
    own: Mutex<akunu::Chat>,
    cancel: CancelFlag,
    /// How likely the tokens of the last reply were.
    logprobs: Mutex<Vec<f32>>,
}

impl Thing for Chat {
    type Opaque = AkunuChat;
    const NAME: &'static str = "chat";
}

impl Chat {
    fn new(model: &Model, values: Values) -> Result<Chat, Failure> {
        let default = model.chat_options();
        let cancel = CancelFlag::default();
        let chat = model.chat_with(ChatOptions {
            sampling: values.sampling.over(default.sampling),
            loop_window: values.loop_window(default.loop_window),
            context: values.context,
            grammar: values.grammar(model)?,
            adapters: values.adapters(model)?,
            speculation: values.speculation(model)?,
            logprobs: values.logprobs(),
            max_tokens: values.max_tokens.or(default.max_tokens),
            stop: values.stop,
            system: values.system,
            cancel: cancel.clone(),
            ..default
        })?;
        Ok(Chat {
            own: Mutex::new(chat),
            cancel,
            logprobs: Mutex::default(),
        })
    }

    fn hear(
        &self,
        begin: impl FnOnce(&mut akunu::Chat) -> Result<Reply<'_>, akunu::Error>,
        listener: &Listener,
    ) -> Result<AkunuStop, Failure> {
        let mut chat = only(&self.own, Chat::NAME)?;
        self.cancel.reset();
        let mut reply = begin(&mut chat)?;
        let mut goes_on = true;
        while goes_on && let Some(piece) = reply.next() {
            goes_on = listener.hear(&piece?);
        }
        let logprobs = reply
            .tokens()
            .iter()
            .filter_map(|token| token.logprobs.as_ref());
        *self.logprobs.lock().unwrap_or_else(PoisonError::into_inner) =
            logprobs.map(|of| of.chosen).collect();
        Ok(match goes_on {
            true => stop_of(reply.stop()),
            false => AkunuStop::Cancelled,
        })
    }
}

/// Starts a conversation; akunu_chat_free frees it. The options may be null; it uses system, context, stop, max_tokens, json_schema,
/// grammar, regex, logprobs, lora, a draft and those of sampling. Values that are not set are those that the model's file suggests, with a new seed.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_chat_new(
    model: *const AkunuModel,
    options: *const AkunuOptions,
    out: *mut *mut AkunuChat,
) -> AkunuStatus {
    call(|| {
        border::check(out, "out")?;
        let model = handles::get::<Model>(model)?;
        let chat = Chat::new(&model, options::read(options)?)?;
        border::write(out, handles::give(chat), "out")
    })
}

/// Frees a conversation, after the running call has ended. Null is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_chat_free(chat: *mut AkunuChat) -> AkunuStatus {
    call(|| handles::take::<Chat>(chat))
}

/// Adds a message without an answer. `role` is system, user, assistant, or another role that the model's template supports.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_chat_say(
    chat: *mut AkunuChat,
    role: *const c_char,
    text: *const c_char,
) -> AkunuStatus {
    call(|| {
        let chat = handles::get::<Chat>(chat)?;
        let message = Message::new(border::text(role, "role")?, border::text(text, "text")?);
        only(&chat.own, Chat::NAME)?.say(message);
        Ok(())
    })
}

/// Asks a question, and passes the answer to `on_text` piece by piece, with `context`, in this thread. The conversation
/// keeps these pieces as the answer; after an error it is as before the question. Why the answer ended is stored in `stop`,
/// unless that is null.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_chat_ask(
    chat: *mut AkunuChat,
    question: *const c_char,
    on_text: AkunuOnText,
    context: *mut c_void,
    stop: *mut AkunuStop,
) -> AkunuStatus {
    let listener = Listener { on_text, context };
    call(|| {
        let chat = handles::get::<Chat>(chat)?;
        let question = border::text(question, "question")?;
        let ended = chat.hear(|own| own.ask(question), &listener)?;
        border::write_if_wanted(stop, ended, "stop")
    })
}

/// Answers the messages so far, added by akunu_chat_say for example; otherwise like akunu_chat_ask.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_chat_answer(
    chat: *mut AkunuChat,
    on_text: AkunuOnText,
    context: *mut c_void,
    stop: *mut AkunuStop,
) -> AkunuStatus {
    let listener = Listener { on_text, context };
    call(|| {
        let chat = handles::get::<Chat>(chat)?;
        let ended = chat.hear(akunu::Chat::answer, &listener)?;
        border::write_if_wanted(stop, ended, "stop")
    })
}

/// Removes the last answer and answers again, with another seed; otherwise like akunu_chat_ask. If that fails, the answer stays.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_chat_regenerate(
    chat: *mut AkunuChat,
    on_text: AkunuOnText,
    context: *mut c_void,
    stop: *mut AkunuStop,
) -> AkunuStatus {
    let listener = Listener { on_text, context };
    call(|| {
        let chat = handles::get::<Chat>(chat)?;
        let ended = chat.hear(akunu::Chat::regenerate, &listener)?;
        border::write_if_wanted(stop, ended, "stop")
    })
}

/// Stores how likely each token of the last reply was, as natural logarithms, if the number logprobs was set. `length` always
/// gets their number; with `to` null and `capacity` 0 only that is stored.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_chat_logprobs(
    chat: *const AkunuChat,
    to: *mut f32,
    capacity: usize,
    length: *mut usize,
) -> AkunuStatus {
    let room = Room {
        to,
        capacity,
        length,
    };
    call(|| {
        let chat = handles::get::<Chat>(chat)?;
        let logprobs = chat.logprobs.lock();
        room.fill(&logprobs.unwrap_or_else(PoisonError::into_inner))
    })
}

/// Saves the conversation in two files: its messages as JSON at `path`, and what the model has computed of them at `path` with
/// ".session" added.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_chat_save(chat: *mut AkunuChat, path: *const c_char) -> AkunuStatus {
    call(|| {
        let chat = handles::get::<Chat>(chat)?;
        let path = border::text(path, "path")?;
        Ok(only(&chat.own, Chat::NAME)?.save(path)?)
    })
}

/// Replaces the conversation by a saved one, which goes on without being read again. The options stay, but the system prompt is
/// that of the file. A file that cannot be read leaves the conversation as it was.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_chat_restore(chat: *mut AkunuChat, path: *const c_char) -> AkunuStatus {
    call(|| {
        let chat = handles::get::<Chat>(chat)?;
        let path = border::text(path, "path")?;
        Ok(only(&chat.own, Chat::NAME)?.restore(path)?)
    })
}

/// Forgets the conversation, except for the system prompt.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_chat_reset(chat: *mut AkunuChat) -> AkunuStatus {
    call(|| {
        let chat = handles::get::<Chat>(chat)?;
        only(&chat.own, Chat::NAME)?.reset();
        Ok(())
    })
}

/// Ends the running answer; it may be called from any thread and from the callback. Without an answer it does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_chat_cancel(chat: *mut AkunuChat) -> AkunuStatus {
    call(|| {
        handles::get::<Chat>(chat)?.cancel.cancel();
        Ok(())
    })
}
