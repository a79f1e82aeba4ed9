//! What BERT changes in a text before it is split into words: accents, letter case, spaces.

use unicode_categories::UnicodeCategories;
use unicode_normalization::UnicodeNormalization;

/// BERT's cleaning of text. Control characters go away, every kind of space is a space, and Chinese characters are words of
/// their own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BertNormalizer {
    pub strip_accents: bool,
    pub lowercase: bool,
}

impl BertNormalizer {
    pub fn run(&self, text: &str) -> String {
        let mut clean = String::with_capacity(text.len());
        for character in text.chars().filter(|c| !is_dirt(*c)) {
            match character {
                _ if character.is_whitespace() => clean.push(' '),
                _ if is_chinese(character) => clean.extend([' ', character, ' ']),
                _ => clean.push(character),
            }
        }
        if self.strip_accents {
            clean = clean.nfd().filter(|c| !c.is_mark_nonspacing()).collect();
        }
        if self.lowercase {
            // Not `str::to_lowercase`, which looks at the neighbours of a Greek sigma.
            clean = clean.chars().flat_map(char::to_lowercase).collect();
        }
        clean
    }
}

/// What BERT throws away.
fn is_dirt(character: char) -> bool {
    match character {
        '\t' | '\n' | '\r' => false,
        '\0' | '\u{FFFD}' => true,
        _ => character.is_other(),
    }
}

/// The blocks of ideographs that BERT counts as Chinese.
fn is_chinese(character: char) -> bool {
    matches!(
        u32::from(character),
        0x4E00..=0x9FFF
            | 0x3400..=0x4DBF
            | 0x20000..=0x2A6DF
            | 0x2A700..=0x2B73F
            | 0x2B740..=0x2B81F
            | 0x2B920..=0x2CEAF
            | 0xF900..=0xFAFF
            | 0x2F800..=0x2FA1F
    )
}
