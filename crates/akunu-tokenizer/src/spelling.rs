//! How the texts of tokens spell bytes and spaces.

use crate::vocabulary::Algorithm;

/// The character that stands for a space.
pub(crate) const SPACE: char = '▁';

/// The same as UTF-8.
pub(crate) const SPACE_BYTES: &[u8] = "▁".as_bytes();

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
            Algorithm::CharacterBpe | Algorithm::SentencePiece | Algorithm::Unigram => {
                Spelling::Spaced
            }
            Algorithm::WordPiece => Spelling::Words,
        }
    }
}

/// `<0x0A>` is the byte 10.
pub(crate) fn byte_of_text(text: &[u8]) -> Option<u8> {
    let [b'<', b'0', b'x', high, low, b'>'] = text else {
        return None;
    };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()
}

/// The byte 10 is `<0x0A>`.
pub(crate) fn text_of_byte(byte: u8) -> String {
    format!("<0x{byte:02X}>")
}

/// The byte that GPT-2 spells with the character of this code.
///
/// Printable Latin-1 characters are their own byte. The other 68 bytes, in ascending order, are
/// spelt with the characters from U+0100 on.
pub(crate) fn byte_of(code: u32) -> Option<u8> {
    match code {
        0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF => u8::try_from(code).ok(),
        0x100..=0x120 => u8::try_from(code - 0x100).ok(),
        0x121..=0x142 => u8::try_from(code - 0x121 + 0x7F).ok(),
        0x143 => Some(0xAD),
        _ => None,
    }
}

/// The character by which GPT-2 spells this byte.
pub(crate) fn character_of(byte: u8) -> char {
    let beyond_latin = |offset: u32| char::from_u32(0x100 + offset).unwrap_or_default();
    match byte {
        0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF => char::from(byte),
        0x00..=0x20 => beyond_latin(u32::from(byte)),
        0x7F..=0xA0 => beyond_latin(0x21 + u32::from(byte - 0x7F)),
        0xAD => beyond_latin(0x43),
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
        let mut bytes: Vec<u8> = alphabet
            .iter()
            .filter_map(|c| byte_of(u32::from(*c)))
            .collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
        assert_eq!(byte_of(u32::from('Ġ')), Some(b' '));
        assert_eq!(byte_of(u32::from('Ċ')), Some(b'\n'));
        assert_eq!(byte_of(u32::from('Ń')), Some(0xAD));
        assert_eq!(byte_of(u32::from('字')), None);
        for byte in 0..=255 {
            assert_eq!(byte_of(u32::from(character_of(byte))), Some(byte));
        }
    }

    #[test]
    fn byte_tokens_are_two_hex_digits() {
        assert_eq!(byte_of_text(b"<0x0A>"), Some(10));
        assert_eq!(byte_of_text(b"<0xFF>"), Some(255));
        assert_eq!(text_of_byte(10), "<0x0A>");
        for text in ["<0x+A>", "<0x0>", "<0x0AB>", "0x0A", "<0xGG>"] {
            assert_eq!(byte_of_text(text.as_bytes()), None, "{text}");
        }
    }
}
