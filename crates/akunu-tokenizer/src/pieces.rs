//! What each token stands for, as bytes.

use crate::sentencepiece::SPACE;
use crate::vocabulary::{Algorithm, TokenKind, Vocabulary};

/// How a token's text spells bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// Every byte is one printable character (GPT-2's table).
    ByteLevel,
    /// UTF-8, `▁` is a space, `<0x0A>` is a byte.
    Spaced,
    /// UTF-8; a word begins with `▁`, other tokens continue one.
    Words,
}

impl Spelling {
    pub fn of(algorithm: Algorithm) -> Spelling {
        match algorithm {
            Algorithm::ByteLevelBpe => Spelling::ByteLevel,
            Algorithm::CharacterBpe | Algorithm::SentencePiece => Spelling::Spaced,
            Algorithm::WordPiece => Spelling::Words,
        }
    }
}

/// The bytes of every token, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    bytes: Vec<u8>,
    /// Where each token ends.
    ends: Vec<usize>,
    /// Whether each token is a control token, which is no text.
    is_control: Vec<bool>,
}

impl Pieces {
    /// Spells out a GGUF vocabulary.
    pub fn new(vocabulary: &Vocabulary<'_>) -> Pieces {
        let spelling = Spelling::of(vocabulary.algorithm);
        let mut pieces = Pieces::default();
        for (text, kind) in vocabulary.tokens.iter().zip(&vocabulary.kinds) {
            pieces.push(text, *kind, spelling);
        }
        pieces
    }

    /// Appends the next token.
    pub fn push(&mut self, text: &str, kind: TokenKind, spelling: Spelling) {
        match (kind, spelling) {
            (TokenKind::Normal | TokenKind::Unused, Spelling::ByteLevel) => {
                self.push_byte_level(text);
            }
            (TokenKind::Control | TokenKind::Unknown | TokenKind::UserDefined, _) => {
                self.bytes.extend_from_slice(text.as_bytes());
            }
            _ => match byte_token(text) {
                Some(byte) if spelling == Spelling::Spaced => self.bytes.push(byte),
                _ => self.push_spaced(text),
            },
        }
        self.ends.push(self.bytes.len());
        let is_control = matches!(kind, TokenKind::Control | TokenKind::Unknown);
        self.is_control.push(is_control);
    }

    fn push_byte_level(&mut self, text: &str) {
        for character in text.chars() {
            match byte_of(character) {
                Some(byte) => self.bytes.push(byte),
                None => {
                    let mut buffer = [0; 4];
                    let utf8 = character.encode_utf8(&mut buffer);
                    self.bytes.extend_from_slice(utf8.as_bytes());
                }
            }
        }
    }

    fn push_spaced(&mut self, text: &str) {
        let mut parts = text.split(SPACE);
        self.bytes.extend(parts.next().unwrap_or_default().bytes());
        for part in parts {
            self.bytes.push(b' ');
            self.bytes.extend(part.bytes());
        }
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of a token.
    pub fn get(&self, id: u32) -> Option<&[u8]> {
        let id = id as usize;
        let end = *self.ends.get(id)?;
        let start = match id.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.bytes.get(start..end)
    }

    /// Whether the token controls the model instead of being text.
    pub fn is_control(&self, id: u32) -> bool {
        self.is_control.get(id as usize).copied().unwrap_or(false)
    }
}

/// `<0x0A>` is the byte 10.
fn byte_token(text: &str) -> Option<u8> {
    let hex = text.strip_prefix("<0x")?.strip_suffix('>')?;
    (hex.len() == 2).then(|| {
        u8::from_str_radix(hex, 16)
            .ok()
            .filter(|_| !hex.starts_with('+'))
    })?
}

/// The byte that GPT-2 spells with this character.
///
/// Printable Latin-1 characters are their own byte. The other 68 bytes, in ascending order, are
/// spelt with the characters from U+0100 on.
fn byte_of(character: char) -> Option<u8> {
    let code = u32::from(character);
    match code {
        0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF => u8::try_from(code).ok(),
        0x100..=0x120 => u8::try_from(code - 0x100).ok(),
        0x121..=0x142 => u8::try_from(code - 0x121 + 0x7F).ok(),
        0x143 => Some(0xAD),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokenizers::pre_tokenizers::byte_level::ByteLevel;

    /// Fails when one of the 256 characters is not decoded, or when two give the same byte.
    #[test]
    fn every_byte_is_spelt_by_one_character_of_the_alphabet() {
        let alphabet = ByteLevel::alphabet();
        let mut bytes: Vec<u8> = alphabet.iter().filter_map(|c| byte_of(*c)).collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
        assert_eq!(byte_of('Ġ'), Some(b' '));
        assert_eq!(byte_of('Ċ'), Some(b'\n'));
        assert_eq!(byte_of('Ń'), Some(0xAD));
        assert_eq!(byte_of('字'), None);
    }

    #[test]
    fn byte_tokens_are_two_hex_digits() {
        assert_eq!(byte_token("<0x0A>"), Some(10));
        assert_eq!(byte_token("<0xFF>"), Some(255));
        for text in ["<0x+A>", "<0x0>", "<0x0AB>", "0x0A", "<0xGG>"] {
            assert_eq!(byte_token(text), None, "{text}");
        }
    }

    #[test]
    fn pieces_are_found_by_id() {
        let mut pieces = Pieces::default();
        pieces.push("Ġa", TokenKind::Normal, Spelling::ByteLevel);
        pieces.push("<s>", TokenKind::Control, Spelling::ByteLevel);
        pieces.push("▁b▁", TokenKind::Normal, Spelling::Spaced);
        assert_eq!(pieces.get(0), Some(&b" a"[..]));
        assert_eq!(pieces.get(1), Some(&b"<s>"[..]));
        assert_eq!(pieces.get(2), Some(&b" b "[..]));
        assert_eq!(pieces.get(3), None);
        assert!(pieces.is_control(1) && !pieces.is_control(2) && !pieces.is_control(9));
    }
}
