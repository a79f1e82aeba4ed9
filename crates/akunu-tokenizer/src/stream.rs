//! Decoding token by token.

use std::ops::Deref;

use crate::tokenizer::Tokenizer;

/// Turns tokens into text as they come, and never cuts a character in two.
///
/// A token may end inside of a character; its bytes are then held back until the rest of the character
/// comes. Bytes that can never become a character are replaced by U+FFFD. Control tokens are silent.
///
/// Text is given out as it stands in the vocabulary: an answer that begins with a space keeps it.
///
/// It borrows the tokenizer, or shares it: `T` is a reference or an [`Arc`](std::sync::Arc).
#[derive(Debug)]
pub struct DecodeStream<T> {
    tokenizer: T,
    pending: Vec<u8>,
}

impl<T: Deref<Target = Tokenizer>> DecodeStream<T> {
    /// A stream that has seen no token.
    pub fn new(tokenizer: T) -> DecodeStream<T> {
        DecodeStream {
            tokenizer,
            pending: Vec::new(),
        }
    }

    /// The text that this token completes, if any. An id beyond the vocabulary is no text.
    pub fn push(&mut self, id: u32) -> Option<String> {
        self.tokenizer.append_text(id, &mut self.pending);
        let text = take_characters(&mut self.pending);
        (!text.is_empty()).then_some(text)
    }

    /// What is still held back: the beginning of a character that never came to its end.
    pub fn finish(self) -> Option<String> {
        (!self.pending.is_empty()).then(|| String::from_utf8_lossy(&self.pending).into_owned())
    }
}

/// Takes the whole characters off the front of `bytes`; at most three bytes stay.
fn take_characters(bytes: &mut Vec<u8>) -> String {
    let mut text = String::new();
    let mut done = 0;
    for chunk in bytes.utf8_chunks() {
        let is_last = done + chunk.valid().len() + chunk.invalid().len() == bytes.len();
        text.push_str(chunk.valid());
        done += chunk.valid().len();
        if is_last && is_incomplete(chunk.invalid()) {
            break;
        }
        if !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
            done += chunk.invalid().len();
        }
    }
    bytes.drain(..done);
    text
}

/// Whether more bytes could make a character of these.
fn is_incomplete(bytes: &[u8]) -> bool {
    let error = std::str::from_utf8(bytes).err();
    error.is_some_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn characters_come_out_whole() {
        let mut pending = Vec::new();
        let mut parts = Vec::new();
        for byte in "aß€🦀".bytes() {
            pending.push(byte);
            parts.push(take_characters(&mut pending));
        }
        assert_eq!(parts, ["a", "", "ß", "", "", "€", "", "", "", "🦀"]);
    }

    #[test]
    fn bytes_that_cannot_be_text_are_replaced_at_once() {
        let mut pending = vec![0xFF, b'a', 0xF0, 0x9F, b'b', 0xE2];
        assert_eq!(take_characters(&mut pending), "\u{FFFD}a\u{FFFD}b");
        assert_eq!(pending, [0xE2]);
    }

    proptest! {
        /// However the bytes are cut, the text is what a decoder of the whole would say.
        #[test]
        fn pieces_add_up_to_the_whole(chunks: Vec<Vec<u8>>) {
            let mut pending = Vec::new();
            let mut text = String::new();
            for chunk in &chunks {
                pending.extend_from_slice(chunk);
                text.push_str(&take_characters(&mut pending));
                prop_assert!(pending.len() < 4);
            }
            text.push_str(&String::from_utf8_lossy(&pending));
            let whole = chunks.concat();
            prop_assert_eq!(text, String::from_utf8_lossy(&whole));
        }
    }
}
