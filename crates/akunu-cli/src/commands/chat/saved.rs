//! Conversations in files: a JSON list of messages, each with a `role` and a `content`.

use crate::failure::Failure;
use crate::input::{self, read_text};
use akunu::Message;
use akunu_gguf::WholeFile;
use std::io::{self, Write};
use std::path::Path;

/// Writes messages to a file, which is whole or not there at all.
pub fn write(messages: &[Message], path: &Path) -> Result<(), Failure> {
    let write = || -> io::Result<()> {
        let mut file = WholeFile::create(path)?;
        serde_json::to_writer_pretty(&mut file, messages)?;
        writeln!(file)?;
        file.finish()
    };
    write().map_err(failed(path))
}

/// Whether a conversation could be written to a file, before somebody is asked whether to replace it.
pub fn check(path: &Path) -> Result<(), Failure> {
    WholeFile::check(path).map_err(failed(path))
}

fn failed(path: &Path) -> impl Fn(io::Error) -> Failure {
    let path = path.to_path_buf();
    move |source| Failure::Write {
        path: path.clone(),
        source,
    }
}

/// Reads what [`write()`] wrote.
pub fn read(path: &Path) -> Result<Vec<Message>, Failure> {
    let wrong = |why: String| Failure::NotAConversation {
        path: path.to_path_buf(),
        why,
    };
    let text = read_text(path, input::PROMPT)?;
    let messages: Vec<Message> =
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    match messages.iter().find(|m| m.content.as_str().is_none()) {
        Some(odd) => Err(wrong(format!("a message of `{}` has no text", odd.role))),
        None => Ok(messages),
    }
}
