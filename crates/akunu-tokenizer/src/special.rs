//! Tokens that are found in the text before anything else, and tokens that end an answer.

use crate::error::TokenizerError;
use crate::search::Search;
use crate::texts::Texts;
use crate::vocabulary::{SpecialIds, TokenKind, Vocabulary};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// The most bytes that all special tokens of a vocabulary may have. Gemma's have some 80,000.
const MAX_SPECIAL_BYTES: usize = 1 << 24;

/// The most bytes that one of them may have: at each byte of a text as many may be compared. The longest in use have
/// about a hundred.
pub(crate) const MAX_SPECIAL_TOKEN_BYTES: usize = 4096;

/// Texts of tokens that end an answer, whatever the file says about them. Many files name only one
/// end token, while the model was trained to end its turn with another, and some files mark such a
/// token as plain text.
pub(crate) const END_TEXTS: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
];

/// Texts of the token that ends a turn, the first one present counts.
const TURN_END_TEXTS: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<turn|>",
    "<|endoftext|>",
    "<EOT>",
    "[EOT]",
];

/// In vocabularies with both of these, `<|end|>` only ends a part of the answer.
const PARTS_END_WITH_END: &[[&str; 2]] = &[["<|return|>", "<|call|>"], ["<|calls|>", "<|flush|>"]];

/// Every token that ends an answer, in the order of ids.
pub(crate) fn end_of_generation(
    special: &SpecialIds,
    id_of: impl Fn(&str) -> Option<u32>,
) -> Vec<u32> {
    let end_is_inner = PARTS_END_WITH_END
        .iter()
        .any(|pair| pair.iter().all(|text| id_of(text).is_some()));
    let texts = END_TEXTS
        .iter()
        .filter(|text| !(end_is_inner && **text == "<|end|>"));
    let mut ids: Vec<u32> = texts.filter_map(|text| id_of(text)).collect();
    ids.extend(
        [special.eos, special.eot, special.eom]
            .into_iter()
            .flatten(),
    );
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The token that ends a turn, when the file does not name it.
pub(crate) fn end_of_turn(id_of: impl Fn(&str) -> Option<u32>) -> Option<u32> {
    TURN_END_TEXTS.iter().find_map(|text| id_of(text))
}

/// A stretch of the text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fragment<'t> {
    /// Text to be tokenized.
    Text(&'t str),
    /// A token that stood in the text.
    Token(u32),
}

/// Finds special tokens in text; of overlapping ones the leftmost, and of those the longest.
#[derive(Debug)]
pub(crate) struct Splitter {
    /// Control, unknown and user-defined tokens.
    all: Finder,
    /// User-defined tokens only: these are text, and are always looked for.
    user_defined: Finder,
}

/// Finds some tokens. Vocabularies have up to some thousand special tokens and not every text is searched
/// for them, so the search is made when it is first needed.
#[derive(Debug)]
struct Finder {
    texts: Arc<Texts>,
    ids: Vec<u32>,
    search: OnceLock<Search>,
}

impl Splitter {
    pub fn new(vocabulary: &Vocabulary) -> Result<Splitter, TokenizerError> {
        let special = |kind| {
            matches!(
                kind,
                TokenKind::Control | TokenKind::Unknown | TokenKind::UserDefined
            )
        };
        Ok(Splitter {
            all: Finder::new(vocabulary, special)?,
            user_defined: Finder::new(vocabulary, |kind| kind == TokenKind::UserDefined)?,
        })
    }

    /// Cuts the text at its special tokens; control tokens are text unless `parse_special`.
    pub fn split<'t>(&self, text: &'t str, parse_special: bool) -> Vec<Fragment<'t>> {
        match parse_special {
            true => self.all.split(text),
            false => self.user_defined.split(text),
        }
    }

    /// Every special token in a text, and where it stands.
    pub fn find_all(&self, text: &str) -> impl Iterator<Item = (Range<usize>, u32)> {
        self.all.find(text)
    }
}

impl Finder {
    fn new(
        vocabulary: &Vocabulary,
        wanted: impl Fn(TokenKind) -> bool,
    ) -> Result<Finder, TokenizerError> {
        let text = |id| vocabulary.tokens.text(id).unwrap_or_default();
        let kinds = (0u32..).zip(&vocabulary.kinds);
        let wanted = kinds.filter(|(_, kind)| wanted(**kind)).map(|(id, _)| id);
        let ids: Vec<u32> = wanted.filter(|id| !text(*id).is_empty()).collect();
        let n_bytes: usize = ids.iter().map(|id| text(*id).len()).sum();
        if n_bytes > MAX_SPECIAL_BYTES {
            return Err(TokenizerError::SpecialTexts {
                found: n_bytes,
                limit: MAX_SPECIAL_BYTES,
            });
        }
        let is_long = |id: &&u32| text(**id).len() > MAX_SPECIAL_TOKEN_BYTES;
        if let Some(id) = ids.iter().find(is_long) {
            return Err(TokenizerError::SpecialText {
                id: *id,
                found: text(*id).len(),
                limit: MAX_SPECIAL_TOKEN_BYTES,
            });
        }
        Ok(Finder {
            texts: Arc::clone(vocabulary.tokens.texts()),
            ids,
            search: OnceLock::new(),
        })
    }

    fn find(&self, text: &str) -> impl Iterator<Item = (Range<usize>, u32)> {
        let search = self.search.get_or_init(|| {
            let texts = self.ids.iter().map(|id| self.texts.get(*id));
            Search::new(texts.map(Option::unwrap_or_default))
        });
        let found = search.find_all(text);
        found.filter_map(|(place, at)| Some((place, *self.ids.get(at as usize)?)))
    }

    fn split<'t>(&self, text: &'t str) -> Vec<Fragment<'t>> {
        let mut fragments = Vec::new();
        let mut done = 0;
        for (place, id) in self.find(text) {
            fragments.extend(text_fragment(&text[done..place.start]));
            fragments.push(Fragment::Token(id));
            done = place.end;
        }
        fragments.extend(text_fragment(&text[done..]));
        fragments
    }
}

fn text_fragment(text: &str) -> Option<Fragment<'_>> {
    (!text.is_empty()).then_some(Fragment::Text(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inner_end_of_harmony_does_not_end_the_answer() {
        let with = |known: &'static [&'static str]| {
            move |text: &str| known.iter().position(|k| *k == text).map(|at| at as u32)
        };
        let special = SpecialIds::default();
        assert_eq!(end_of_generation(&special, with(&["a", "<|end|>"])), [1]);
        let harmony = with(&["<|end|>", "<|return|>", "<|call|>"]);
        assert_eq!(end_of_generation(&special, harmony), [1, 2]);
    }

    #[test]
    fn named_end_tokens_count_once() {
        let special = SpecialIds {
            eos: Some(7),
            eot: Some(3),
            ..SpecialIds::default()
        };
        assert_eq!(end_of_generation(&special, |_| Some(7)), [3, 7]);
    }
}
