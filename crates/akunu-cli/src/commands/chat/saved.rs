//! Conversations in files: a JSON list of messages, each with a `role` and a `content`.

use crate::failure::Failure;
use crate::running::read_text;
use akunu::Message;
use std::io::{self, Write};
use std::path::Path;

/// Writes messages to a file, which is whole or not there at all.
pub fn write(messages: &[Message], path: &Path) -> Result<(), Failure> {
    let write = || -> io::Result<()> {
        let folder = path.parent().filter(|parent| *parent != Path::new(""));
        let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
        serde_json::to_writer_pretty(&mut file, messages)?;
        writeln!(file)?;
        file.persist(path)?;
        Ok(())
    };
    write().map_err(|source| Failure::Write {
        path: path.to_path_buf(),
        source,
    })
}

/// Reads what [`write()`] wrote.
pub fn read(path: &Path) -> Result<Vec<Message>, Failure> {
    let wrong = |why: String| Failure::NotAConversation {
        path: path.to_path_buf(),
        why,
    };
    let text = read_text(path)?;
    let messages: Vec<Message> =
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    match messages.iter().find(|m| m.content.as_str().is_none()) {
        Some(odd) => Err(wrong(format!("a message of `{}` has no text", odd.role))),
        None => Ok(messages),
    }
}
