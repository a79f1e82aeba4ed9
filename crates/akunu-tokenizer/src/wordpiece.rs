//! WordPiece: the longest token that a word begins with, then the longest that its rest begins with, and so on.
//!
//! A word whose rest begins with no token is unknown as a whole.

use unicode_categories::UnicodeCategories;

use crate::spelling::SPACE;
use crate::tokens::Tokens;
use crate::vocabulary::{TokenKind, Vocabulary};
use ahash::AHashMap;

/// Words longer than this are unknown, as they are to BERT's own tokenizer.
pub(crate) const LONGEST_WORD: usize = 100;

/// The encoder of words.
#[derive(Debug)]
pub(crate) struct WordPiece {
    /// Tokens that begin a word.
    first: AHashMap<Box<str>, u32>,
    /// Tokens that continue one.
    inner: AHashMap<Box<str>, u32>,
    unknown: u32,
    /// In characters.
    longest_word: usize,
    /// Bytes of the longest token: more need not be looked up.
    longest_token: usize,
}

impl WordPiece {
    /// The model of a GGUF vocabulary, which marks tokens that begin a word with `▁` and leaves the others bare.
    pub fn from_gguf(vocabulary: &Vocabulary, unknown: u32) -> WordPiece {
        let mut model = WordPiece::empty(unknown, LONGEST_WORD);
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

    /// The model of a `tokenizer.json`, which marks tokens that continue a word, with `##`.
    pub fn from_json(tokens: &Tokens, mark: &str, longest_word: usize, unknown: u32) -> WordPiece {
        let mut model = WordPiece::empty(unknown, longest_word);
        for id in 0..tokens.len() as u32 {
            let text = tokens.text(id).unwrap_or_default();
            model.add_first(text, id);
            if let Some(rest) = text.strip_prefix(mark) {
                model.add_inner(rest, id);
            }
        }
        model
    }

    fn empty(unknown: u32, longest_word: usize) -> WordPiece {
        WordPiece {
            first: AHashMap::new(),
            inner: AHashMap::new(),
            unknown,
            longest_word,
            longest_token: 0,
        }
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
        if word.chars().count() > self.longest_word {
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
pub(crate) fn is_punctuation(character: char) -> bool {
    character.is_ascii_punctuation() || character.is_punctuation()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::tests::tokens;

    fn encode(word: &str) -> Vec<u32> {
        let tokens = tokens(&["[UNK]", "un", "##aff", "##able", "##a", "##ff", "un##"]).unwrap();
        let mut ids = Vec::new();
        WordPiece::from_json(&tokens, "##", 9, 0).encode(word, &mut ids);
        ids
    }

    #[test]
    fn the_longest_token_is_taken_first() {
        assert_eq!(encode("unaffable"), [1, 2, 3]);
        assert_eq!(encode("una"), [1, 4]);
        assert_eq!(encode("unx"), [0], "no token for the rest: all is unknown");
        assert_eq!(encode("unaffablea"), [0], "longer than nine characters");
        assert_eq!(
            encode("##a"),
            [4],
            "a text that is spelt like a token is one"
        );
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
