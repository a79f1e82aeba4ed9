//! Texts from files and from standard input, each only up to a length: what never ends, such as a device, is an error
//! before it fills the memory.

use crate::failure::Failure;
use crate::terminal::note;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::Path;

/// Bytes of a prompt, a question or a conversation, at most: more than any context holds.
pub const PROMPT: u64 = 64 << 20;
/// Bytes of a text that is taken piece by piece, at most.
pub const CORPUS: u64 = 1 << 30;
/// Bytes of a file with keys, at most.
pub const KEYS: u64 = 1 << 20;

/// A text file of at most `limit` bytes; `-` is standard input.
pub fn read_text(path: &Path, limit: u64) -> Result<String, Failure> {
    if path == Path::new("-") {
        return read_input(limit);
    }
    let wrong = |source| Failure::Read {
        path: path.to_path_buf(),
        source,
    };
    let file = File::open(path).map_err(wrong)?;
    let bytes = read_up_to(limit, file).map_err(wrong)?;
    let bytes = bytes.ok_or_else(|| Failure::TooLong {
        name: path.display().to_string(),
        limit,
    })?;
    String::from_utf8(bytes).map_err(|error| Failure::NotUtf8 {
        path: path.to_path_buf(),
        at: error.utf8_error().valid_up_to(),
    })
}

/// Standard input, of at most `limit` bytes.
pub fn read_input(limit: u64) -> Result<String, Failure> {
    let input = io::stdin();
    if input.is_terminal() {
        note("reading from the terminal; Ctrl-D on an empty line ends the text");
    }
    let bytes = read_up_to(limit, input.lock())?.ok_or_else(|| Failure::TooLong {
        name: "standard input".to_string(),
        limit,
    })?;
    String::from_utf8(bytes)
        .map_err(|error| Failure::InputNotUtf8(error.utf8_error().valid_up_to()))
}

/// All bytes; `None` if there are more than `limit`.
fn read_up_to(limit: u64, from: impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let n = from.take(limit + 1).read_to_end(&mut bytes)?;
    Ok((n as u64 <= limit).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails when the last byte that is allowed is too much, or a text without end is read on.
    #[test]
    fn texts_are_read_up_to_their_limit() {
        let read = |n: u64| read_up_to(4, io::repeat(b'x').take(n)).expect("nothing fails");
        assert_eq!(read(0).as_deref(), Some(&b""[..]));
        assert_eq!(read(4).as_deref(), Some(&b"xxxx"[..]));
        assert_eq!(read(5), None);
        assert_eq!(read(u64::MAX), None);
    }
}
