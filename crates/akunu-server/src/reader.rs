//! Reads the text of an answer as it comes: what is said, what is only thought, and which tools are called.
//!
//! ```text
//! <think>…</think>                                       DeepSeek, Qwen 3, SmolLM 3
//! <tool_call>{"name": …, "arguments": {…}}</tool_call>    Hermes, Qwen
//! {"name": …, "parameters": {…}}                          Llama 3, or any model that was told to
//! [TOOL_CALLS][{"name": …, "arguments": {…}}, …]          Mistral; newer ones [TOOL_CALLS]name[ARGS]{…}
//! ```
//!
//! Calls are looked for only if the request has tools, and count only if they name one of them: anything else is text.
//! Text that may begin a mark is held back until the mark is whole or impossible.

mod calls;

pub(crate) use self::calls::ToolCall;

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
    Reasoning(String),
    Call(ToolCall),
}

const THINK: &str = "<think>";
const END_THINK: &str = "</think>";
pub(crate) const CALL: &str = "<tool_call>";
pub(crate) const END_CALL: &str = "</tool_call>";
pub(crate) const MISTRAL: &str = "[TOOL_CALLS]";
pub(crate) const PYTHON: &str = "<|python_tag|>";
pub(crate) const ARGS: &str = "[ARGS]";

/// Texts of control tokens that mean something here. The engine leaves control tokens out of the text.
pub(crate) const MARKS: [&str; 7] = [THINK, END_THINK, CALL, END_CALL, MISTRAL, PYTHON, ARGS];

/// A call is not longer than this; what is, is text.
const MAX_CALL_BYTES: usize = 64 << 10;

/// What is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The beginning of an answer or of what follows a thought or a call: only whitespace so far.
    Start,
    Text,
    Reasoning,
    /// Between the marks of a call.
    Call,
    /// JSON that may be a call, with the mark before it.
    Json(&'static str),
}

/// Reads one answer.
pub(crate) struct Reader {
    state: State,
    held: String,
    /// Names of the tools that may be called.
    tools: Vec<String>,
    parts: Vec<Part>,
    /// Whether the next text follows a mark: whitespace between them is none of the text.
    is_fresh: bool,
}

impl Reader {
    /// Reads an answer that may call these tools; `thinks` if the prompt ends within a thought.
    pub fn new(tools: Vec<String>, thinks: bool) -> Reader {
        Reader {
            state: if thinks {
                State::Reasoning
            } else {
                State::Start
            },
            held: String::new(),
            tools,
            parts: Vec::new(),
            is_fresh: thinks,
        }
    }

    /// Adds text; returns the parts that are certain now.
    pub fn push(&mut self, text: &str) -> Vec<Part> {
        self.held.push_str(text);
        while self.advance() {}
        std::mem::take(&mut self.parts)
    }

    /// What was held back, when nothing follows.
    pub fn finish(&mut self) -> Vec<Part> {
        let held = std::mem::take(&mut self.held);
        match self.state {
            State::Start | State::Text => self.say(held),
            State::Reasoning => self.think(held),
            // The end mark is often a control token that ends the answer.
            State::Call => match calls::parse(&held, &self.tools) {
                Some(calls) => self.called(calls),
                None => self.say(format!("{CALL}{held}")),
            },
            State::Json(mark) => self.say(format!("{mark}{held}")),
        }
        std::mem::take(&mut self.parts)
    }

    /// Reads on as far as possible; whether something changed.
    fn advance(&mut self) -> bool {
        match self.state {
            State::Start => self.start(),
            State::Text => self.text(),
            State::Reasoning => self.reasoning(),
            State::Call => self.call(),
            State::Json(mark) => self.json(mark),
        }
    }

    fn start(&mut self) -> bool {
        // Llama writes a semicolon between two calls.
        let said = if self.is_fresh {
            self.held.trim_start_matches([' ', '\n', ';', ','])
        } else {
            self.held.trim_start()
        };
        let marks = self.marks();
        if said.is_empty() || marks.iter().any(|mark| may_become(said, mark)) {
            return false;
        }
        if let Some(thought) = said.strip_prefix(THINK) {
            self.held = thought.to_string();
            self.is_fresh = true;
            self.state = State::Reasoning;
            return true;
        }
        let is_json = said.starts_with(['{', '[']) && !said.starts_with(MISTRAL);
        if is_json && !self.tools.is_empty() {
            self.held = said.to_string();
            self.state = State::Json("");
        } else {
            self.state = State::Text;
        }
        true
    }

    fn text(&mut self) -> bool {
        // Thoughts come first, so that this mark means nothing here.
        let marks = &self.marks()[1..];
        let found = marks
            .iter()
            .filter_map(|mark| Some((self.held.find(mark)?, *mark)))
            .min();
        let Some((at, mark)) = found else {
            let text = self.take_certain(marks);
            self.say(text);
            return false;
        };
        let text = self.held[..at].trim_end().to_string();
        self.held.drain(..at + mark.len());
        self.say(text);
        self.state = if mark == CALL {
            State::Call
        } else {
            State::Json(mark)
        };
        true
    }

    fn reasoning(&mut self) -> bool {
        let Some(at) = self.held.find(END_THINK) else {
            let thought = self.take_certain(&[END_THINK]);
            self.think(thought);
            return false;
        };
        let thought = self.held[..at].trim_end().to_string();
        self.held.drain(..at + END_THINK.len());
        self.think(thought);
        self.is_fresh = true;
        self.state = State::Start;
        true
    }

    /// Takes what is not the beginning of a mark, nor whitespace that may go before one.
    fn take_certain(&mut self, marks: &[&str]) -> String {
        let overlaps = marks.iter().map(|mark| overlap(&self.held, mark));
        let Some(keep) = overlaps.max() else {
            return std::mem::take(&mut self.held);
        };
        let certain = self.held[..self.held.len() - keep].trim_end().len();
        let rest = self.held.split_off(certain);
        std::mem::replace(&mut self.held, rest)
    }

    fn call(&mut self) -> bool {
        let Some(at) = self.held.find(END_CALL) else {
            return self.give_up(CALL);
        };
        let rest = self.held.split_off(at + END_CALL.len());
        let whole = std::mem::replace(&mut self.held, rest);
        match calls::parse(&whole[..at], &self.tools) {
            Some(calls) => self.called(calls),
            None => self.say(format!("{CALL}{whole}")),
        }
        self.state = State::Start;
        true
    }

    fn json(&mut self, mark: &'static str) -> bool {
        if !self.held.trim_end().ends_with(['}', ']']) {
            return self.give_up(mark);
        }
        match calls::first(&self.held, &self.tools) {
            calls::First::Calls(calls, end) => {
                self.called(calls);
                self.held.drain(..end);
                self.state = State::Start;
                true
            }
            calls::First::Incomplete => self.give_up(mark),
            calls::First::Other => {
                let held = std::mem::take(&mut self.held);
                self.say(format!("{mark}{held}"));
                self.state = State::Text;
                true
            }
        }
    }

    /// Takes what is too long to be a call as text.
    fn give_up(&mut self, mark: &str) -> bool {
        if self.held.len() <= MAX_CALL_BYTES {
            return false;
        }
        let held = std::mem::take(&mut self.held);
        self.say(format!("{mark}{held}"));
        self.state = State::Text;
        true
    }

    fn marks(&self) -> &'static [&'static str] {
        if self.tools.is_empty() {
            &[THINK]
        } else {
            &[THINK, CALL, MISTRAL, PYTHON]
        }
    }

    fn say(&mut self, text: String) {
        let text = self.after_mark(text);
        self.parts.extend(text.map(Part::Text));
    }

    fn think(&mut self, text: String) {
        let text = self.after_mark(text);
        self.parts.extend(text.map(Part::Reasoning));
    }

    /// The text without the whitespace after a mark, if anything is left.
    fn after_mark(&mut self, text: String) -> Option<String> {
        let text = if self.is_fresh {
            text.trim_start().to_string()
        } else {
            text
        };
        self.is_fresh &= text.is_empty();
        (!text.is_empty()).then_some(text)
    }

    fn called(&mut self, calls: Vec<ToolCall>) {
        self.parts.extend(calls.into_iter().map(Part::Call));
        self.is_fresh = true;
    }
}

/// Whether more text could make `said` begin with the mark.
fn may_become(said: &str, mark: &str) -> bool {
    said.len() < mark.len() && mark.starts_with(said)
}

/// Bytes at the end of a text that begin a mark.
fn overlap(text: &str, mark: &str) -> usize {
    let longest = text.len().min(mark.len() - 1);
    let begins = |&n: &usize| text.ends_with(&mark[..n]);
    (1..=longest).rev().find(begins).unwrap_or(0)
}

#[cfg(test)]
mod tests;
