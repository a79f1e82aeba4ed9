//! What differs between a terminal and a pipe: colours, and who reads the notes.

use std::borrow::Cow;
use std::env;
use std::io::{self, IsTerminal, Write};

/// Whether to colour what goes to a terminal. <https://no-color.org> is the convention.
fn wants_colour(is_terminal: bool) -> bool {
    is_terminal && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The text, dim where colours are shown.
fn dim(text: &str, colour: bool) -> String {
    match colour {
        true => format!("\u{1b}[2m{text}\u{1b}[0m"),
        false => text.to_string(),
    }
}

/// Says something about the conversation to the person, on stderr: stdout has answers only.
pub fn note(text: &str) {
    let colour = wants_colour(io::stderr().is_terminal());
    // Whoever closed stderr does not want to know.
    let _ = writeln!(io::stderr(), "{}", dim(text, colour));
}

/// Says on stderr what is done, in a line that stays.
pub fn line(text: &str) {
    // Whoever closed stderr does not want to know.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Says on stderr that something goes on, but perhaps not as expected.
pub fn warn(text: &str) {
    // Whoever closed stderr does not want to know.
    let _ = writeln!(io::stderr(), "warning: {text}");
}

/// What a model says, as it may be shown: on a terminal without control characters, which could move
/// the cursor or worse.
pub fn shown(text: &str) -> Cow<'_, str> {
    match io::stdout().is_terminal() {
        true => without_controls(text),
        false => text.into(),
    }
}

fn without_controls(text: &str) -> Cow<'_, str> {
    let is_wild = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    match text.contains(is_wild) {
        true => text.replace(is_wild, "").into(),
        false => text.into(),
    }
}

/// The prompt as it is, and as it is shown.
pub fn prompt() -> (String, String) {
    let plain = "> ".to_string();
    match wants_colour(io::stdout().is_terminal()) {
        true => (plain, "\u{1b}[1;32m> \u{1b}[0m".to_string()),
        false => (plain.clone(), plain),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_cannot_steer_the_terminal() {
        assert_eq!(without_controls("a\u{1b}[2Jb\r\u{7}"), "a[2Jb");
        assert_eq!(without_controls("two\n\tlines é"), "two\n\tlines é");
    }

    #[test]
    fn a_pipe_gets_no_colour() {
        assert!(!wants_colour(false));
        assert_eq!(dim("x", false), "x");
        assert_eq!(dim("x", true), "\u{1b}[2mx\u{1b}[0m");
    }
}
