//! Reads the text of an answer as it comes: what is said, what is only thought, and which tools are called.
//!
//! Calls are looked for only if the request has tools, in every style of [`STYLES`], and count only if they name one of the tools:
//! anything else is text. Text that may begin a mark is held back until the mark is whole or impossible. A call is told when its
//! name is known, and its arguments as they come.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::calls::{
    Place, SILENT, STYLES, Scanned, Style, THOUGHTS, Tool, ToolCall, overlap, scan,
};

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
    Reasoning(String),
    /// A call begins. Its arguments follow.
    Begun(ToolCall),
    /// More of the arguments of the call that has begun.
    Arguments(String),
    /// The call that has begun, to its end or to where it was cut.
    Call(ToolCall),
}

/// A call is not longer than this; what is, is cut.
const MAX_CALL_BYTES: usize = 256 << 10;

/// What is being read.
#[derive(Debug)]
enum State {
    /// The beginning of an answer or of what follows a thought or a call: only whitespace so far.
    Start,
    Text,
    /// A thought, up to this mark.
    Reasoning(&'static str),
    /// What may be calls, in one of these styles, after so many bytes of whitespace.
    Calls(Vec<&'static Style>, usize),
}

/// What was told of the calls that are held.
#[derive(Default)]
struct Told {
    /// Calls that were told to their end.
    n_whole: usize,
    /// The call that has begun.
    open: Option<ToolCall>,
}

/// Reads one answer.
pub(crate) struct Reader {
    state: State,
    held: String,
    tools: Arc<[Tool]>,
    /// How many more calls it may make.
    n_left: usize,
    told: Told,
    parts: Vec<Part>,
    /// Whether the next text follows a mark: whitespace between them is none of the text.
    is_fresh: bool,
}

/// What a place in the text may be.
enum Found {
    Thought(&'static str, usize),
    /// This many bytes that are none of the text.
    Silent(usize),
    Calls(Vec<&'static Style>),
    /// The text ends before it can be said.
    Perhaps,
    Nothing,
}

impl Reader {
    /// Reads an answer that may make so many calls of these tools. `thought` is the end of the thought within which the prompt ends.
    pub fn new(tools: Arc<[Tool]>, max_calls: usize, thought: Option<&'static str>) -> Reader {
        Reader {
            state: thought.map_or(State::Start, State::Reasoning),
            held: String::new(),
            tools,
            n_left: max_calls,
            told: Told::default(),
            parts: Vec::new(),
            is_fresh: thought.is_some(),
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
        match &self.state {
            State::Start | State::Text => self.say(&held),
            State::Reasoning(_) => self.think(&held),
            // The end mark is often a control token that ends the answer.
            State::Calls(styles, space) => {
                let begun = styles.iter().find_map(|style| {
                    match scan(style, &held[*space..], &self.tools) {
                        Scanned::More(calls) if calls.iter().any(has_begun) => Some(calls),
                        // Nothing but a call begins with a mark and the name of a tool.
                        Scanned::More(calls) if style.has_mark() && !calls.is_empty() => {
                            Some(calls)
                        }
                        _ => None,
                    }
                });
                match begun {
                    Some(calls) => {
                        self.tell(&calls);
                        self.begin_last(&calls);
                        self.cut();
                    }
                    None => self.say(&held),
                }
            }
        }
        std::mem::take(&mut self.parts)
    }

    /// Reads on as far as possible; whether something changed.
    fn advance(&mut self) -> bool {
        match &mut self.state {
            State::Start | State::Text => self.text(),
            State::Reasoning(end) => {
                let end = *end;
                self.reasoning(end)
            }
            State::Calls(styles, space) => {
                let (styles, space) = (std::mem::take(styles), *space);
                self.calls(styles, space)
            }
        }
    }

    /// Says text up to the next place that is, or may be, something else.
    fn text(&mut self) -> bool {
        let mut is_start = matches!(self.state, State::Start);
        if is_start && self.is_fresh {
            // Llama writes a semicolon between two calls.
            let said = self.held.trim_start_matches([' ', '\n', ';', ',']);
            self.held.drain(..self.held.len() - said.len());
        }
        let places: Vec<(usize, char)> = self.held.char_indices().collect();
        // Whitespace before a call is held, and with it the end of the line before.
        let mut is_line = is_start;
        for (at, c) in places {
            match self.find(at, is_start, is_line) {
                Found::Nothing => {}
                Found::Perhaps => {
                    let keep = self.held.len() - self.certain(at);
                    return self.say_all_but(keep, is_start);
                }
                found => return self.enter(found, at),
            }
            is_start &= c.is_whitespace();
            is_line = c == '\n' || (is_line && c.is_whitespace());
        }
        let keep = self.held.len() - self.certain(self.held.len());
        self.say_all_but(keep, is_start)
    }

    /// How much of the text before a place can be said: whitespace may go before a call.
    fn certain(&self, at: usize) -> usize {
        if self.tools.is_empty() {
            return at;
        }
        self.held[..at].trim_end().len()
    }

    /// Says what is held but for the last bytes. There is nothing more to do.
    fn say_all_but(&mut self, keep: usize, is_start: bool) -> bool {
        if is_start {
            return false;
        }
        let rest = self.held.split_off(self.held.len() - keep);
        let said = std::mem::replace(&mut self.held, rest);
        if !said.is_empty() {
            self.state = State::Text;
        }
        self.say(&said);
        false
    }

    /// What begins at a place of the text that is held.
    fn find(&self, at: usize, is_start: bool, is_line: bool) -> Found {
        let rest = &self.held[at..];
        let may_be = |mark: &str| rest.len() < mark.len() && mark.starts_with(rest);
        let mut is_open = false;
        for mark in SILENT {
            if rest.starts_with(mark) && !is_open {
                return Found::Silent(mark.len());
            }
            is_open |= may_be(mark);
        }
        if is_start {
            for (begin, end) in THOUGHTS {
                if rest.starts_with(begin) {
                    return Found::Thought(end, begin.len());
                }
                is_open |= may_be(begin);
            }
        }
        if !self.tools.is_empty() {
            let is_possible = |style: &&Style| match style.place {
                Place::Anywhere => true,
                Place::Line => is_line,
                Place::Start => is_start,
            };
            let styles = STYLES.iter().filter(is_possible);
            let triggered = styles
                .clone()
                .filter(|style| rest.starts_with(style.trigger()));
            let triggered: Vec<&'static Style> = triggered.collect();
            is_open |= styles.clone().any(|style| may_be(style.trigger()));
            if !is_open && !triggered.is_empty() {
                return Found::Calls(triggered);
            }
        }
        if is_open {
            Found::Perhaps
        } else {
            Found::Nothing
        }
    }

    /// Says the text before a place and goes on with what begins there.
    fn enter(&mut self, found: Found, at: usize) -> bool {
        let before = self.held[..at].trim_end().len();
        let rest = self.held.split_off(before);
        let said = std::mem::replace(&mut self.held, rest);
        self.say(&said);
        let space = at - before;
        match found {
            Found::Thought(end, length) => {
                self.held.drain(..space + length);
                self.is_fresh = true;
                self.state = State::Reasoning(end);
            }
            Found::Silent(length) => {
                self.held.drain(..space + length);
                self.is_fresh = true;
                self.state = State::Start;
            }
            Found::Calls(styles) => self.state = State::Calls(styles, space),
            Found::Perhaps | Found::Nothing => {}
        }
        true
    }

    fn reasoning(&mut self, end: &'static str) -> bool {
        let Some(at) = self.held.find(end) else {
            let keep = overlap(&self.held, end);
            let certain = self.held[..self.held.len() - keep].trim_end().len();
            let rest = self.held.split_off(certain);
            let thought = std::mem::replace(&mut self.held, rest);
            self.think(&thought);
            return false;
        };
        let thought = self.held[..at].trim_end().to_string();
        self.held.drain(..at + end.len());
        self.think(&thought);
        self.is_fresh = true;
        self.state = State::Start;
        true
    }

    fn calls(&mut self, styles: Vec<&'static Style>, space: usize) -> bool {
        let mut open = Vec::new();
        let mut begun = Vec::new();
        for style in styles {
            match scan(style, &self.held[space..], &self.tools) {
                Scanned::Whole(calls, end) => {
                    self.tell(&calls);
                    return self.leave(space + end);
                }
                Scanned::More(calls) => {
                    open.push(style);
                    if !begun.iter().any(has_begun) {
                        begun = calls;
                    }
                }
                // It is told already that it is a call.
                Scanned::Other(end) if self.told.open.is_some() => {
                    self.cut();
                    return self.leave(space + end);
                }
                Scanned::Other(_) => {}
            }
        }
        self.tell(&begun);
        if self.held.len() > MAX_CALL_BYTES && self.told.open.is_some() {
            self.cut();
            return self.leave(self.held.len());
        }
        if open.is_empty() || self.held.len() > MAX_CALL_BYTES {
            let first = self.held[space..].chars().next().map_or(0, char::len_utf8);
            let rest = self.held.split_off(space + first);
            let said = std::mem::replace(&mut self.held, rest);
            self.say(&said);
            self.state = State::Text;
            return true;
        }
        self.state = State::Calls(open, space);
        false
    }

    /// Goes on after a section of calls.
    fn leave(&mut self, end: usize) -> bool {
        self.held.drain(..end);
        self.told = Told::default();
        self.is_fresh = true;
        self.state = State::Start;
        true
    }

    /// Tells of calls what was not told yet.
    fn tell(&mut self, calls: &[ToolCall]) {
        for call in calls.iter().skip(self.told.n_whole) {
            if self.n_left == 0 || !has_begun(call) {
                return;
            }
            let mut open = match self.told.open.take() {
                Some(open) => open,
                None => self.begin(call),
            };
            let more = call
                .arguments
                .get(open.arguments.len()..)
                .unwrap_or_default();
            if !more.is_empty() {
                self.parts.push(Part::Arguments(more.to_string()));
            }
            open.arguments.push_str(more);
            (open.complete, open.is_whole) = (call.complete, call.is_whole);
            if open.is_whole {
                self.parts.push(Part::Call(open));
                self.told.n_whole += 1;
                self.n_left -= 1;
            } else {
                self.told.open = Some(open);
            }
        }
    }

    /// Begins a call of which only the name has come.
    fn begin_last(&mut self, calls: &[ToolCall]) {
        let last = calls.last().filter(|call| !has_begun(call));
        let Some(call) = last.filter(|_| self.n_left > 0) else {
            return;
        };
        let begun = self.begin(call);
        self.told.open = Some(begun);
    }

    fn begin(&mut self, call: &ToolCall) -> ToolCall {
        let begun = ToolCall {
            id: new_id(),
            name: call.name.clone(),
            ..ToolCall::default()
        };
        self.parts.push(Part::Begun(begun.clone()));
        begun
    }

    /// Ends the call that has begun.
    fn cut(&mut self) {
        self.parts.extend(self.told.open.take().map(Part::Call));
    }

    fn say(&mut self, text: &str) {
        let text = self.after_mark(text);
        self.parts.extend(text.map(Part::Text));
    }

    fn think(&mut self, text: &str) {
        let text = self.after_mark(text);
        self.parts.extend(text.map(Part::Reasoning));
    }

    /// The text without the whitespace after a mark, if anything is left.
    fn after_mark(&mut self, text: &str) -> Option<String> {
        let text = if self.is_fresh {
            text.trim_start()
        } else {
            text
        };
        self.is_fresh &= text.is_empty();
        (!text.is_empty()).then(|| text.to_string())
    }
}

/// Whether it is certain that this is a call: something of its arguments has come.
fn has_begun(call: &ToolCall) -> bool {
    !call.arguments.is_empty()
}

/// Nine letters and digits: what Mistral's templates insist on.
fn new_id() -> String {
    static N_CALLS: AtomicU64 = AtomicU64::new(0);
    let n = N_CALLS.fetch_add(1, Relaxed) ^ akunu::random_seed();
    format!("c{:08x}", n as u32)
}

#[cfg(test)]
mod tests;
