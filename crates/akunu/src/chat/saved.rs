//! Conversations in files, so that they go on in another process without being read again.
//!
//! ```text
//! talk.json           the messages, and how many of them the model does not see any more
//! talk.json.session   the tokens, keys and values that the model has computed of them
//! ```
//!
//! The messages are the conversation. The second file only saves the time of reading them: without it, or with one of another
//! model, the next reply reads them again.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use akunu_tokenizer::Message;
use serde_json::{Value, json};

use super::Chat;
use crate::error::Error;

const VERSION: u64 = 1;

impl Chat {
    /// Saves the conversation in two files: its messages as JSON at `path`, and what the model has computed of them beside it, at
    /// `path` with `.session` added.
    pub fn save(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let saved = json!({
            "version": VERSION,
            "messages": self.history.messages,
            "forgotten": self.history.window.n_forgotten(),
        });
        // The messages are replaced when they are complete: a program that is ended meanwhile leaves the old ones.
        let part = beside(path, ".part");
        fs::write(&part, format!("{saved:#}\n")).map_err(|error| Error::chat_file(&part, error))?;
        fs::rename(&part, path).map_err(|error| Error::chat_file(path, error))?;
        if self.session.tokens().is_empty() {
            return Ok(());
        }
        Ok(self.session.save(session_of(path))?)
    }

    /// Replaces the conversation by a saved one. The options stay; the system prompt is that of the file. A file that cannot
    /// be read leaves the conversation as it was.
    pub fn restore(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let text = fs::read(path).map_err(|error| Error::chat_file(path, error))?;
        let (messages, n_forgotten) =
            parse(&text).map_err(|why| Error::chat_file(path, std::io::Error::other(why)))?;
        self.go_on_with(messages);
        self.history.window.begin_after(n_forgotten);
        self.session.set_adapters(&self.options.adapters)?;
        let session = session_of(path);
        if session.exists() && self.session.restore(session).is_err() {
            // It was computed by another model, or with other options: the messages are read again.
            self.session.clear();
        }
        Ok(())
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

fn session_of(path: &Path) -> PathBuf {
    beside(path, ".session")
}

/// The messages of a file, and how many are forgotten; or what is wrong with it.
fn parse(text: &[u8]) -> Result<(Vec<Message>, usize), String> {
    let saved: Value =
        serde_json::from_slice(text).map_err(|error| format!("is not valid JSON: {error}"))?;
    let version = saved["version"].as_u64();
    if version != Some(VERSION) {
        return Err(format!(
            "`version` is {}, and {VERSION} is what can be read",
            saved["version"]
        ));
    }
    let messages: Vec<Message> = serde_json::from_value(saved["messages"].clone())
        .map_err(|error| format!("`messages` is not a list of messages: {error}"))?;
    let n_forgotten = saved["forgotten"].as_u64().unwrap_or(0) as usize;
    let n_forgotten = n_forgotten.min(messages.len());
    Ok((messages, n_forgotten))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_file_is_told_with_its_field() {
        for (text, why) in [
            ("hello", "not valid JSON"),
            ("{}", "`version` is null"),
            (r#"{"version": 2}"#, "`version` is 2"),
            (r#"{"version": 1, "messages": [5]}"#, "`messages`"),
        ] {
            let found = parse(text.as_bytes()).expect_err(text);
            assert!(found.contains(why), "{found}");
        }
        let text =
            r#"{"version": 1, "messages": [{"role": "user", "content": "a"}], "forgotten": 9}"#;
        let (messages, n_forgotten) = parse(text.as_bytes()).expect("fine");
        assert_eq!((messages.len(), n_forgotten), (1, 1));
    }
}
