//! What differs between a terminal and a pipe: colours, and who reads the notes.

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
    fn a_pipe_gets_no_colour() {
        assert!(!wants_colour(false));
        assert_eq!(dim("x", false), "x");
        assert_eq!(dim("x", true), "\u{1b}[2mx\u{1b}[0m");
    }
}
