//! What was said in a conversation, and the way back from what could not be answered.

use akunu_engine::{ImageSpan, Model, Prompt};
use akunu_tokenizer::Message;

use crate::channels::Channels;
use crate::error::Error;
use crate::reply::ReplyStats;
use crate::window::Window;

/// What was said.
#[derive(Default)]
pub(crate) struct History {
    /// All messages, and what the model was told before.
    pub messages: Vec<Message>,
    /// The images that messages name.
    #[cfg(feature = "images")]
    pub images: Vec<crate::images::Image>,
    /// What the model sees of them.
    pub window: Window,
    /// What the last reply took.
    pub last: Option<ReplyStats>,
    /// The last reply, as long as nothing came after it and the session ends with it.
    pub open: Option<Open>,
}

/// A reply that can go on.
pub(crate) struct Open {
    /// As the model wrote it, with white space around it.
    pub text: String,
    /// Tokens of the session before it.
    pub n_prompt: usize,
    /// The images among those.
    pub images: Vec<ImageSpan>,
    /// Where it was cut.
    pub channels: Channels,
}

/// A conversation as it was before a question.
pub(crate) struct Before {
    /// Messages that stay.
    n_kept: usize,
    /// Messages that come back.
    removed: Vec<Message>,
    window: Window,
}

impl History {
    /// The conversation of these messages, up to where the answer begins.
    pub fn prompt(&self, model: &Model, messages: &[Message]) -> Result<Prompt, Error> {
        #[cfg(feature = "images")]
        return crate::images::prompt(model, messages, &self.images);
        #[cfg(not(feature = "images"))]
        Ok(crate::turns::encode(model, messages)?.into())
    }

    /// Keeps images for messages that name them, and forgets those that no message names any more.
    #[cfg(feature = "images")]
    pub fn show(&mut self, images: &[crate::images::Image]) {
        self.images = match crate::images::shown(&self.messages, &self.images) {
            Ok(shown) => shown.into_iter().cloned().collect(),
            Err(_) => std::mem::take(&mut self.images),
        };
        self.images.extend_from_slice(images);
    }

    /// The way back to the present.
    pub fn before(&self) -> Before {
        Before {
            n_kept: self.messages.len(),
            removed: Vec::new(),
            window: self.window,
        }
    }

    /// Takes the last reply out, so that it goes on; returns the way back to it as well. `None` if there is no such reply.
    pub fn reopen(&mut self) -> Option<(Before, Open)> {
        let open = self.open.take()?;
        let before = Before {
            n_kept: self.messages.len() - 1,
            removed: vec![self.messages.pop()?],
            window: self.window,
        };
        Some((before, open))
    }

    /// Takes back what answers the last question; returns the way back to it, or `None` when nothing was asked.
    pub fn take_answer(&mut self) -> Option<Before> {
        let is_asked = |message: &Message| message.role != "assistant" && message.role != "system";
        let n_kept = self.messages.iter().rposition(is_asked)? + 1;
        self.open = None;
        let before = Before {
            n_kept,
            removed: self.messages.split_off(n_kept),
            window: self.window,
        };
        self.window.look_again();
        Some(before)
    }

    /// Takes the last question back, with all that followed; returns it.
    pub fn take_question(&mut self) -> Option<Message> {
        let is_question = |message: &Message| message.role == "user";
        let at = self.messages.iter().rposition(is_question)?;
        self.open = None;
        self.window.look_again();
        self.messages.drain(at..).next()
    }

    /// Replaces the system prompt, with which the messages begin.
    pub fn set_system(&mut self, text: Option<&str>) {
        let is_system = |message: &Message| message.role == "system";
        if self.messages.first().is_some_and(is_system) {
            self.messages.remove(0);
        }
        if let Some(text) = text {
            self.messages.insert(0, Message::new("system", text));
        }
        self.window.look_again();
        self.open = None;
    }

    /// Goes back: what could not be answered was not said.
    pub fn restore(&mut self, before: Before) {
        self.messages.truncate(before.n_kept);
        self.messages.extend(before.removed);
        self.window = before.window;
        self.open = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(roles: &[&str]) -> History {
        let messages = roles.iter().zip(0..);
        History {
            messages: messages
                .map(|(role, n)| Message::new(*role, n.to_string()))
                .collect(),
            ..History::default()
        }
    }

    /// An answer after a tool's result is one to the result: the call stays.
    #[test]
    fn an_answer_is_taken_back_and_restored() {
        let mut talk = history(&["system", "user", "assistant", "tool", "assistant"]);
        let all = talk.messages.clone();
        let before = talk.take_answer().expect("something was asked");
        assert_eq!(talk.messages, all[..4]);
        talk.messages
            .push(Message::new("assistant", "half of an ans"));
        talk.restore(before);
        assert_eq!(talk.messages, all);
        assert!(history(&["system", "assistant"]).take_answer().is_none());
    }

    #[test]
    fn a_system_prompt_is_added_replaced_and_removed() {
        let mut talk = history(&["user", "assistant"]);
        for (text, wanted) in [(Some("a"), 3), (Some("b"), 3), (None, 2), (None, 2)] {
            talk.set_system(text);
            assert_eq!(talk.messages.len(), wanted);
            let first = &talk.messages[0];
            assert_eq!(
                (first.role == "system").then_some("system"),
                text.map(|_| "system")
            );
            assert!(text.is_none_or(|text| first.content == text));
        }
    }

    #[test]
    fn a_question_is_taken_back_with_all_that_followed() {
        let mut talk = history(&["user", "assistant", "user", "assistant", "tool"]);
        let question = talk.take_question().expect("a question");
        assert_eq!((question.content, talk.messages.len()), ("2".into(), 2));
        talk.take_question().expect("another");
        assert!(talk.take_question().is_none() && talk.messages.is_empty());
    }
}
