//! What the line editor knows of a conversation: its commands, files after them, and texts of several
//! lines.

use super::{quoted, settings, slash};
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper, Result};
use std::cell::Cell;

/// Helps with a line while it is typed.
#[derive(Default)]
pub struct Editing {
    files: FilenameCompleter,
    has_text: Cell<bool>,
}

impl Editing {
    /// Whether something is typed. The editor does not say so when Ctrl-C ends a line.
    pub fn has_text(&self) -> bool {
        self.has_text.get()
    }
}

impl Completer for Editing {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        context: &Context<'_>,
    ) -> Result<(usize, Vec<Pair>)> {
        let typed = &line[..pos];
        let Some((command, argument)) = typed.split_once(' ') else {
            // A pasted line may begin with a tab, which asks for nothing.
            let names = slash::names().filter(|_| !typed.is_empty());
            return Ok((0, words_after(typed, names)));
        };
        match command {
            "/save" | "/load" | "/image" => self.files.complete(line, pos, context),
            "/set" => Ok((
                pos - argument.len(),
                words_after(argument, settings::names()),
            )),
            _ => Ok((pos, Vec::new())),
        }
    }
}

/// The words that begin with what is typed.
fn words_after(typed: &str, words: impl Iterator<Item = &'static str>) -> Vec<Pair> {
    let fits = words.filter(|word| word.starts_with(typed) && typed != *word);
    let pair = |word: &str| Pair {
        display: word.to_string(),
        replacement: format!("{word} "),
    };
    fits.map(pair).collect()
}

impl Validator for Editing {
    fn validate(&self, context: &mut ValidationContext) -> Result<ValidationResult> {
        Ok(match quoted::is_open(context.input()) {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}

impl Hinter for Editing {
    type Hint = String;

    /// There are no hints; it is asked for one whenever the line has changed.
    fn hint(&self, line: &str, _pos: usize, _context: &Context<'_>) -> Option<String> {
        self.has_text.set(!line.is_empty());
        None
    }
}

impl Highlighter for Editing {}

impl Helper for Editing {}

#[cfg(test)]
mod tests {
    use super::*;
    use rustyline::history::DefaultHistory;

    fn completed(line: &str) -> (usize, Vec<String>) {
        let history = DefaultHistory::new();
        let context = Context::new(&history);
        let found = Editing::default().complete(line, line.len(), &context);
        let (from, pairs) = found.expect("nothing is read");
        (from, pairs.into_iter().map(|p| p.replacement).collect())
    }

    #[test]
    fn tab_completes_commands_and_names_of_values() {
        let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect();
        assert_eq!(completed("/re"), (0, words(&["/regen ", "/reset "])));
        let repeats = words(&["repeat_penalty ", "repeat_last_n "]);
        assert_eq!(completed("/set rep"), (5, repeats));
        assert_eq!(completed("What is"), (7, Vec::new()));
    }

    #[test]
    fn tab_completes_files_after_save_and_load() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("talk.json"), "").expect("written");
        let line = format!("/load {}/ta", folder.path().display());
        let (_, found) = completed(&line);
        assert!(
            found.len() == 1 && found[0].ends_with("talk.json"),
            "{found:?}"
        );
    }
}
