//! The bytes of each token.
//!
//! A vocabulary is large and an answer small, so tokens are spelt out when they are needed.

use crate::spelling::{SPACE_BYTES, Spelling, byte_of, byte_of_text};
use crate::texts::Texts;
use crate::vocabulary::TokenKind;
use std::sync::Arc;

/// The texts of all tokens, and how to read them.
#[derive(Debug)]
pub(crate) struct Pieces {
    /// As the vocabulary writes them.
    pub texts: Arc<Texts>,
    /// The kind of each token.
    pub kinds: Vec<TokenKind>,
    /// How the texts spell bytes.
    pub spelling: Spelling,
}

impl Pieces {
    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether the token controls the model instead of being text.
    pub fn is_control(&self, id: u32) -> bool {
        let kind = self.kinds.get(id as usize);
        matches!(kind, Some(TokenKind::Control | TokenKind::Unknown))
    }

    /// Appends the bytes of a token. `None` when there is no such token.
    pub fn append(&self, id: u32, out: &mut Vec<u8>) -> Option<()> {
        let text = self.texts.get(id)?;
        match (self.kinds.get(id as usize)?, self.spelling) {
            (TokenKind::Normal | TokenKind::Unused, Spelling::ByteLevel) => {
                append_byte_level(text, out);
            }
            (TokenKind::Control | TokenKind::Unknown | TokenKind::UserDefined, _) => {
                out.extend_from_slice(text);
            }
            (_, spelling) => match byte_of_text(text) {
                Some(byte) if spelling == Spelling::Spaced => out.push(byte),
                _ => append_spaced(text, out),
            },
        }
        Some(())
    }
}

/// A character of the alphabet is one byte of UTF-8, or two; others stay as they are.
fn append_byte_level(mut text: &[u8], out: &mut Vec<u8>) {
    while let [first, rest @ ..] = text {
        let spelt = match (first, rest) {
            (0x21..=0x7E, _) => Some((*first, rest)),
            (0xC2..=0xDF, [second, rest @ ..]) => {
                let code = u32::from(first & 0x1F) << 6 | u32::from(second & 0x3F);
                byte_of(code).map(|byte| (byte, rest))
            }
            _ => None,
        };
        let (byte, rest) = spelt.unwrap_or((*first, rest));
        out.push(byte);
        text = rest;
    }
}

/// `▁` is a space, everything else stays.
fn append_spaced(mut text: &[u8], out: &mut Vec<u8>) {
    while let [first, rest @ ..] = text {
        let (byte, rest) = match text.strip_prefix(SPACE_BYTES) {
            Some(rest) => (b' ', rest),
            None => (*first, rest),
        };
        out.push(byte);
        text = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(tokens: &[(&str, TokenKind)], spelling: Spelling) -> Pieces {
        let mut texts = Texts::default();
        tokens
            .iter()
            .for_each(|(text, _)| texts.push(text.as_bytes()));
        Pieces {
            texts: Arc::new(texts),
            kinds: tokens.iter().map(|(_, kind)| *kind).collect(),
            spelling,
        }
    }

    fn bytes(pieces: &Pieces, id: u32) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        pieces.append(id, &mut out).map(|()| out)
    }

    #[test]
    fn pieces_are_spelt_by_id() {
        use TokenKind::{Control, Normal, UserDefined};
        let tokens = [("Ġa字ŁĮ", Normal), ("<s>Ġ", Control)];
        let byte_level = pieces(&tokens, Spelling::ByteLevel);
        assert_eq!(
            bytes(&byte_level, 0),
            Some(b" a\xE5\xAD\x97\x9F\x8C".to_vec())
        );
        assert_eq!(bytes(&byte_level, 1), Some("<s>Ġ".into()));
        assert_eq!(bytes(&byte_level, 2), None);
        let tokens = [("▁b▁é", Normal), ("<0x0A>", Normal), ("▁", UserDefined)];
        let spaced = pieces(&tokens, Spelling::Spaced);
        assert_eq!(bytes(&spaced, 0), Some(" b é".into()));
        assert_eq!(bytes(&spaced, 1), Some(b"\n".to_vec()));
        assert_eq!(bytes(&spaced, 2), Some("▁".into()));
        assert!(byte_level.is_control(1) && !byte_level.is_control(0) && !byte_level.is_control(9));
    }
}
