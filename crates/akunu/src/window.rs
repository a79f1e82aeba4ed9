//! What of a long conversation the model still sees: what it was told before, and the latest turns.
//!
//! ```text
//! system | turn | turn | turn | turn | question
//!          forgotten   ^ the window begins here
//! ```
//!
//! A turn is a question and what follows it up to the next one; turns are forgotten as a whole. When
//! the window has to move, it moves until half of the room is free: with each move the model reads all
//! that is left again, which should not happen at every question.

use akunu_engine::Prompt;
use akunu_tokenizer::Message;

/// Where the window begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    /// Messages after those of the system that are not shown any more.
    n_forgotten: usize,
}

impl Window {
    /// Messages that the model does not see any more.
    pub fn n_forgotten(&self) -> usize {
        self.n_forgotten
    }

    /// The window of a conversation that was saved.
    pub fn begin_after(&mut self, n_forgotten: usize) {
        self.n_forgotten = n_forgotten;
    }

    /// The conversation became shorter: the window is looked for again.
    pub fn look_again(&mut self) {
        self.n_forgotten = 0;
    }

    /// Moves on until the messages fit `room` tokens, and returns them as tokens. The last question
    /// stays, even if it is too long by itself.
    pub fn fit<E>(
        &mut self,
        messages: &[Message],
        room: usize,
        encode: impl Fn(&[Message]) -> Result<Prompt, E>,
    ) -> Result<Prompt, E> {
        let mut prompt = encode(&self.seen(messages))?;
        if prompt.tokens.len() <= room {
            return Ok(prompt);
        }
        while prompt.tokens.len() > room / 2 && self.forget_a_turn(messages) {
            prompt = encode(&self.seen(messages))?;
        }
        Ok(prompt)
    }

    /// Forgets the oldest turn, unless it is the last.
    fn forget_a_turn(&mut self, messages: &[Message]) -> bool {
        let said = &messages[n_told(messages)..];
        let next = said
            .iter()
            .enumerate()
            .skip(self.n_forgotten + 1)
            .find(|(_, message)| message.role == "user");
        match next {
            Some((at, _)) => {
                self.n_forgotten = at;
                true
            }
            None => false,
        }
    }

    /// The messages that the model sees.
    fn seen(&self, messages: &[Message]) -> Vec<Message> {
        let (told, said) = messages.split_at(n_told(messages));
        [told, &said[self.n_forgotten.min(said.len())..]].concat()
    }
}

/// How many messages tell the model something before the conversation.
fn n_told(messages: &[Message]) -> usize {
    let is_told = |message: &&Message| message.role == "system";
    messages.iter().take_while(is_told).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// A word is a token.
    fn encode(messages: &[Message]) -> Result<Prompt, Infallible> {
        let words = messages.iter().flat_map(|message| {
            let text = message.content.as_str().unwrap_or_default();
            text.split(' ').map(|word| word.parse().unwrap_or(0))
        });
        Ok(words.collect::<Vec<u32>>().into())
    }

    fn talk(turns: &[(&str, &str)], question: &str) -> Vec<Message> {
        let mut messages = vec![Message::new("system", "99")];
        for (question, answer) in turns {
            messages.push(Message::new("user", *question));
            messages.push(Message::new("assistant", *answer));
        }
        messages.push(Message::new("user", question));
        messages
    }

    #[test]
    fn the_oldest_turns_give_way_as_a_whole_and_the_system_stays() {
        let messages = talk(&[("1 2", "3"), ("4", "5 6"), ("7", "8")], "9");
        let mut window = Window::default();
        let prompt = window.fit(&messages, 10, encode).expect("encodes");
        assert_eq!(
            prompt.tokens,
            [99, 1, 2, 3, 4, 5, 6, 7, 8, 9],
            "it fits just so"
        );
        assert!(window.n_forgotten() == 0);
        let prompt = window.fit(&messages, 9, encode).expect("encodes");
        assert_eq!(prompt.tokens, [99, 7, 8, 9], "at most half of the room");
        let again = window.fit(&messages, 9, encode).expect("encodes");
        assert_eq!(again, prompt, "there is room now: it does not move");
    }

    #[test]
    fn the_last_question_stays_whatever_its_length() {
        let messages = talk(&[("1", "2")], "3 4 5 6 7 8");
        let mut window = Window::default();
        let prompt = window.fit(&messages, 4, encode).expect("encodes");
        assert_eq!(prompt.tokens, [99, 3, 4, 5, 6, 7, 8]);
    }
}
