//! WordPiece: the longest token that a word begins with, then the longest that its rest begins with, and so on.
//!
//! A word whose rest begins with no token is unknown as a whole.

use unicode_categories::UnicodeCategories;

use crate::spelling::SPACE;
use crate::vocabulary::{TokenKind, Vocabulary};
use ahash::AHashMap;

/// Words of more characters are unknown, as they are to BERT's own tokenizer.
const LONGEST_WORD: usize = 100;

/// The encoder of words.
#[derive(Debug)]
pub(crate) struct WordPiece {
    /// Tokens that begin a word.
    first: AHashMap<Box<str>, u32>,
    /// Tokens that continue one.
    inner: AHashMap<Box<str>, u32>,
    unknown: u32,
    /// Bytes of the longest token: more need not be looked up.
    longest_token: usize,
}

impl WordPiece {
    /// The model of a GGUF vocabulary, which marks tokens that begin a word with `▁` and leaves the others bare.
    pub fn new(vocabulary: &Vocabulary, unknown: u32) -> WordPiece {
        let mut model = WordPiece {
            first: AHashMap::new(),
            inner: AHashMap::new(),
            unknown,
            longest_token: 0,
        };
        for (id, kind) in (0u32..).zip(&vocabulary.kinds) {
            let text = vocabulary.tokens.text(id).unwrap_or_default();
            match (text.strip_prefix(SPACE), kind) {
                (Some(word), _) => model.add_first(word, id),
                (None, TokenKind::Normal) => model.add_inner(text, id),
                (None, _) => model.add_first(text, id),
            }
        }
        model
    }

    fn add_first(&mut self, text: &str, id: u32) {
        self.longest_token = self.longest_token.max(text.len());
        self.first.entry(text.into()).or_insert(id);
    }

    fn add_inner(&mut self, text: &str, id: u32) {
        self.longest_token = self.longest_token.max(text.len());
        self.inner.entry(text.into()).or_insert(id);
    }

    /// Appends the tokens of a word.
    pub fn encode(&self, word: &str, out: &mut Vec<u32>) {
        let begin = out.len();
        let mut rest = word;
        if word.chars().count() > LONGEST_WORD {
            return out.push(self.unknown);
        }
        while !rest.is_empty() {
            let known = if rest.len() == word.len() {
                &self.first
            } else {
                &self.inner
            };
            let Some((id, len)) = self.longest_in(known, rest) else {
                out.truncate(begin);
                return out.push(self.unknown);
            };
            out.push(id);
            rest = &rest[len..];
        }
    }

    /// The longest token that a text begins with, and its bytes.
    fn longest_in(&self, known: &AHashMap<Box<str>, u32>, text: &str) -> Option<(u32, usize)> {
        let ends = (1..=text.len().min(self.longest_token)).rev();
        let mut ends = ends.filter(|end| text.is_char_boundary(*end));
        ends.find_map(|end| known.get(&text[..end]).map(|id| (*id, end)))
    }
}

/// Calls `each` with the words of a text as BERT has them: between spaces, and every punctuation mark alone.
pub(crate) fn bert_words(text: &str, each: &mut dyn FnMut(&str)) {
    for word in text.split(char::is_whitespace) {
        for piece in word.split_inclusive(is_punctuation) {
            let mark = piece.chars().next_back().filter(|c| is_punctuation(*c));
            let (before, mark) = piece.split_at(piece.len() - mark.map_or(0, char::len_utf8));
            for part in [before, mark] {
                if !part.is_empty() {
                    each(part);
                }
            }
        }
    }
}

/// ASCII's signs are punctuation here, even those that Unicode calls symbols.
fn is_punctuation(character: char) -> bool {
    character.is_ascii_punctuation() || character.is_punctuation()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(word: &str) -> Vec<u32> {
        let mut model = WordPiece {
            first: AHashMap::new(),
            inner: AHashMap::new(),
            unknown: 0,
            longest_token: 0,
        };
        model.add_first("un", 1);
        for (text, id) in [("aff", 2), ("able", 3), ("a", 4), ("ff", 5)] {
            model.add_inner(text, id);
        }
        let mut ids = Vec::new();
        model.encode(word, &mut ids);
        ids
    }

    #[test]
    fn the_longest_token_is_taken_first() {
        assert_eq!(encode("unaffable"), [1, 2, 3]);
        assert_eq!(encode("una"), [1, 4]);
        assert_eq!(encode("unx"), [0], "no token for the rest: all is unknown");
        let long = format!("un{}", "a".repeat(99));
        assert_eq!(encode(&long), [0], "longer than a hundred characters");
        assert!(encode("").is_empty());
    }

    #[test]
    fn words_are_between_spaces_and_punctuation_is_alone() {
        let mut words = Vec::new();
        bert_words(" Hey, you…!  a+b\u{3000}c", &mut |word| {
            words.push(word.to_string());
        });
        assert_eq!(words, ["Hey", ",", "you", "…", "!", "a", "+", "b", "c"]);
    }
}
