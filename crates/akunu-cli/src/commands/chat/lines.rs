//! Where questions come from: a person at a terminal, with line editing and history, or a pipe.

use crate::cache;
use crate::failure::Failure;
use crate::terminal::{note, prompt};
use rustyline::Editor;
use rustyline::config::Config;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;

const HISTORY_LINES: usize = 1000;

/// What came next.
pub enum Line {
    Text(String),
    End,
}

/// Reads line by line.
pub enum Lines {
    /// A person, whose lines are kept in a file.
    Person {
        editor: Box<Editor<(), FileHistory>>,
        history: Option<PathBuf>,
    },
    /// A file or another program.
    Pipe,
}

impl Lines {
    /// Reads from standard input, whatever that is.
    pub fn open() -> Result<Lines, Failure> {
        if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
            return Ok(Lines::Pipe);
        }
        let config = Config::builder()
            .max_history_size(HISTORY_LINES)?
            .history_ignore_space(true)
            .auto_add_history(true)
            .build();
        let mut editor = Box::new(Editor::with_config(config)?);
        let history = cache::folder().map(|folder| folder.join("history"));
        if let Some(path) = &history {
            // There is none at the first time.
            let _ = editor.load_history(path);
        }
        Ok(Lines::Person { editor, history })
    }

    /// Whether somebody sits there.
    pub fn is_interactive(&self) -> bool {
        matches!(self, Lines::Person { .. })
    }

    /// The next line. Ctrl-C at the prompt clears the line; twice, it leaves.
    pub fn next(&mut self) -> Result<Line, Failure> {
        let Lines::Person { editor, .. } = self else {
            return piped();
        };
        let mut asked_to_leave = false;
        loop {
            match editor.readline(&prompt()) {
                Ok(text) => return Ok(Line::Text(text)),
                Err(ReadlineError::Eof) => return Ok(Line::End),
                Err(ReadlineError::Interrupted) if asked_to_leave => return Ok(Line::End),
                Err(ReadlineError::Interrupted) => {
                    note("Ctrl-C again or Ctrl-D leaves");
                    asked_to_leave = true;
                }
                Err(other) => return Err(other.into()),
            }
        }
    }
}

/// A line of standard input; bytes that are no text are an error, as everywhere.
fn piped() -> Result<Line, Failure> {
    let mut text = String::new();
    Ok(match io::stdin().lock().read_line(&mut text)? {
        0 => Line::End,
        _ => Line::Text(text.trim_end_matches(['\r', '\n']).to_string()),
    })
}

impl Drop for Lines {
    /// Keeps the history. A conversation that went well does not fail for it.
    fn drop(&mut self) {
        if let Lines::Person {
            editor,
            history: Some(path),
        } = self
        {
            let _ = path.parent().map(std::fs::create_dir_all);
            let _ = editor.save_history(path);
        }
    }
}
