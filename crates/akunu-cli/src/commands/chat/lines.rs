//! Where questions come from: a person at a terminal, with line editing and history, or plain lines.

use super::editing::Editing;
use super::quoted;
use crate::cache;
use crate::failure::Failure;
use crate::input;
use crate::terminal::{note, prompt};
use rustyline::Editor;
use rustyline::config::{CompletionType, Config};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const HISTORY_LINES: usize = 1000;

/// Terminals that cannot move their cursor.
const WITHOUT_EDITING: [&str; 3] = ["dumb", "cons25", "emacs"];

/// A Ctrl-C so soon after the end of an answer was meant for the answer.
const LATE: Duration = Duration::from_millis(500);

/// What came next.
pub enum Line {
    /// A question or a command.
    Typed(String),
    /// A question between quotation marks.
    Quoted(String),
    End,
}

/// Reads line by line.
pub enum Lines {
    /// A person, whose lines are kept in a file.
    Person(Box<Person>),
    /// A file, another program, or a terminal without editing.
    Plain(Plain),
}

/// A person at a terminal.
pub struct Person {
    editor: Editor<Editing, FileHistory>,
    history: Option<PathBuf>,
    /// A line that came instead of a yes or no.
    pending: Option<String>,
}

/// Lines of standard input.
#[derive(Default)]
pub struct Plain {
    /// Lines that were read.
    n_read: usize,
}

/// Whether a person sits there, who can edit lines.
pub fn is_person() -> bool {
    let term = std::env::var("TERM").unwrap_or_default();
    let can_edit = !WITHOUT_EDITING.contains(&term.as_str());
    io::stdin().is_terminal() && io::stdout().is_terminal() && can_edit
}

impl Lines {
    /// Reads from standard input, whatever that is.
    pub fn open() -> Result<Lines, Failure> {
        if !is_person() {
            return Ok(Lines::Plain(Plain::default()));
        }
        let config = Config::builder()
            .max_history_size(HISTORY_LINES)?
            .history_ignore_space(true)
            .completion_type(CompletionType::List)
            .build();
        let mut editor = Editor::with_config(config)?;
        editor.set_helper(Some(Editing::default()));
        let history = cache::folder().map(|folder| folder.join("history"));
        if let Some(path) = &history {
            // There is none at the first time.
            let _ = editor.load_history(path);
        }
        Ok(Lines::Person(Box::new(Person {
            editor,
            history,
            pending: None,
        })))
    }

    /// The next line. `was_answered` says that the one before was answered to the end.
    pub fn next(&mut self, was_answered: bool) -> Result<Line, Failure> {
        let text = match self {
            Lines::Person(person) => person.next(was_answered)?,
            Lines::Plain(plain) => plain.next()?,
        };
        Ok(match text {
            None => Line::End,
            Some(text) => match quoted::inside(&text) {
                Some(inner) => Line::Quoted(inner),
                None => Line::Typed(text),
            },
        })
    }

    /// Asks for a yes or no; `None` without a person at a terminal.
    pub fn confirm(&mut self, question: &str) -> Result<Option<bool>, Failure> {
        let Lines::Person(person) = self else {
            return Ok(None);
        };
        person.confirm(question).map(Some)
    }
}

impl Person {
    /// The next line; `None` at the end. Ctrl-C clears a line, and leaves where there is none.
    fn next(&mut self, was_answered: bool) -> Result<Option<String>, Failure> {
        if let Some(pending) = self.pending.take() {
            return Ok(Some(pending));
        }
        let mut late = was_answered;
        loop {
            let begin = Instant::now();
            match self.editor.readline(&prompt()) {
                Ok(text) => {
                    self.remember(&text);
                    return Ok(Some(text));
                }
                Err(ReadlineError::Eof) => return Ok(None),
                Err(ReadlineError::Interrupted) => {
                    let has_text = self.editor.helper().is_some_and(Editing::has_text);
                    late &= begin.elapsed() < LATE;
                    if !has_text && !late {
                        return Ok(None);
                    }
                    note("Ctrl-C again or Ctrl-D leaves");
                    late = false;
                }
                Err(wrong) if is_no_text(&wrong) => {
                    note("this line has a byte that is not UTF-8 text: type it again");
                }
                Err(other) => return Err(other.into()),
            }
        }
    }

    /// Whether a person says yes. Something else than yes or no is kept as the next line.
    fn confirm(&mut self, question: &str) -> Result<bool, Failure> {
        match self.editor.readline(question) {
            Ok(text) => match text.trim().to_lowercase().as_str() {
                "y" | "yes" => return Ok(true),
                "n" | "no" | "" => {}
                _ => self.pending = Some(text),
            },
            Err(ReadlineError::Eof | ReadlineError::Interrupted) => {}
            Err(wrong) if is_no_text(&wrong) => {}
            Err(other) => return Err(other.into()),
        }
        Ok(false)
    }

    /// Keeps a line in the history. A conversation that goes well does not fail for it.
    fn remember(&mut self, text: &str) {
        let _ = self.editor.add_history_entry(text);
        if let Some(path) = &self.history {
            let _ = path.parent().map(std::fs::create_dir_all);
            let _ = self.editor.append_history(path);
        }
    }
}

/// Whether a byte was typed that is not UTF-8 text. The rest of its line is lost with it.
fn is_no_text(error: &ReadlineError) -> bool {
    matches!(error, ReadlineError::Io(error) if error.kind() == io::ErrorKind::InvalidData)
}

impl Plain {
    /// The next text; `None` at the end. Bytes that are no text are an error, as everywhere, unless somebody at a terminal
    /// can type the line again.
    fn next(&mut self) -> Result<Option<String>, Failure> {
        let is_terminal = io::stdin().is_terminal();
        loop {
            if is_terminal {
                write!(io::stderr(), "> ")?;
            }
            match self.read(io::stdin().lock()) {
                Err(wrong @ Failure::LineNotUtf8(_)) if is_terminal => note(&wrong.to_string()),
                read => return read,
            }
        }
    }

    /// A line, or several between quotation marks.
    fn read(&mut self, from: impl BufRead) -> Result<Option<String>, Failure> {
        let mut from = from.take(input::PROMPT + 1);
        let mut bytes = Vec::new();
        loop {
            let n = from.read_until(b'\n', &mut bytes)?;
            self.n_read += usize::from(n > 0);
            if from.limit() == 0 {
                return Err(Failure::TooLong {
                    name: format!("line {} of standard input", self.n_read),
                    limit: input::PROMPT,
                });
            }
            let text = std::str::from_utf8(&bytes);
            let text = text.map_err(|_| Failure::LineNotUtf8(self.n_read))?;
            if n == 0 || !quoted::is_open(text) {
                let text = text.trim_end_matches(['\r', '\n']);
                return Ok((!bytes.is_empty()).then(|| text.to_string()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails when a line that is no text is not named, or one without end is read on.
    #[test]
    fn lines_that_cannot_be_questions_are_named() {
        let mut plain = Plain::default();
        let mut from = &b"one\n\"\"\"two\nthree\"\"\"\r\n\xff\nfive"[..];
        let mut next = || plain.read(&mut from);
        assert_eq!(next().unwrap().as_deref(), Some("one"));
        assert_eq!(next().unwrap().as_deref(), Some("\"\"\"two\nthree\"\"\""));
        let wrong = next().unwrap_err().to_string();
        assert_eq!(wrong, "standard input: line 4 is not UTF-8 text");
        assert_eq!(next().unwrap().as_deref(), Some("five"));
        assert_eq!(next().unwrap(), None);
        let endless = io::BufReader::new(io::repeat(b'x'));
        let wrong = Plain::default().read(endless).unwrap_err().to_string();
        assert!(
            wrong.starts_with("line 1 of standard input has more than 64.0 MiB"),
            "{wrong}"
        );
    }
}
