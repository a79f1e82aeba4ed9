//! The channels of an answer: what the model thinks, and what it says.
//!
//! gpt-oss writes an answer as messages, each behind a header between control tokens:
//!
//! ```text
//! <|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…
//! ```
//!
//! Models without such control tokens only say something.

/// Reads one answer, token by token.
#[derive(Clone, Debug, Default)]
pub(crate) struct Channels {
    state: State,
    /// Whether there was a header.
    has_channels: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Said,
    Thought,
    /// The header of a message, as far as it came.
    Header(String),
    /// Between two messages, where only the name of a role stands.
    Between,
}

/// What some text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Said,
    Thought,
    /// None of the answer.
    Nothing,
}

/// The channel of thoughts.
const ANALYSIS: &str = "analysis";

impl Channels {
    /// A control token, by its name.
    pub fn mark(&mut self, name: &str) {
        match name {
            "<|channel|>" => {
                self.has_channels = true;
                self.state = State::Header(String::new());
            }
            "<|message|>" => {
                let is_thought = match &self.state {
                    State::Header(header) => header.trim_start().starts_with(ANALYSIS),
                    _ => false,
                };
                self.state = match is_thought {
                    true => State::Thought,
                    false => State::Said,
                };
            }
            "<|start|>" | "<|end|>" if self.has_channels => self.state = State::Between,
            _ => {}
        }
    }

    /// What a text is that comes next.
    pub fn hear(&mut self, text: &str) -> Heard {
        match &mut self.state {
            State::Said => Heard::Said,
            State::Thought => Heard::Thought,
            State::Header(header) => {
                header.push_str(text);
                Heard::Nothing
            }
            State::Between => Heard::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is thought and what is said of these tokens; control tokens stand in angle brackets.
    fn read(tokens: &[&str]) -> [String; 2] {
        let mut channels = Channels::default();
        let [mut thought, mut said] = [String::new(), String::new()];
        for token in tokens {
            if token.starts_with("<|") {
                channels.mark(token);
                continue;
            }
            match channels.hear(token) {
                Heard::Thought => thought.push_str(token),
                Heard::Said => said.push_str(token),
                Heard::Nothing => {}
            }
        }
        [thought, said]
    }

    #[test]
    fn thoughts_and_headers_are_not_said() {
        let answer = [
            "<|channel|>",
            "analy",
            "sis",
            "<|message|>",
            "Two and ",
            "two.",
            "<|end|>",
            "<|start|>",
            "assistant",
            "<|channel|>",
            "final",
            "<|message|>",
            "Four",
            ".",
        ];
        assert_eq!(read(&answer), ["Two and two.", "Four."]);
        assert_eq!(read(&answer[..6]), ["Two and two.", ""]);
        let with_preamble = ["<|channel|>", "commentary", "<|message|>", "I look."];
        assert_eq!(read(&with_preamble), ["", "I look."]);
    }

    /// Other models have control tokens of these names, and no channels.
    #[test]
    fn without_channels_all_is_said() {
        assert_eq!(
            read(&["Hello", "<|end|>", "<|start|>", " there"]),
            ["", "Hello there"]
        );
    }
}
