//! Unigram: of all ways to cut a text into tokens, the one whose scores have the greatest sum.
//!
//! ```text
//! best[0] = 0
//! for each character at `start`, for each token at `start` that ends at `end`:
//!     best[end] = max(best[end], best[start] + score of the token)
//! ```
//!
//! A character that is no token by itself may be an unknown one, whose score is 10 below the least of the vocabulary.
//! Unknown characters in a row are one unknown token, or their bytes where the vocabulary has those.

use crate::charsmap::Charsmap;
use crate::error::TokenizerError;
use crate::search::Search;
use crate::spelling::{SPACE, text_of_byte};
use crate::vocabulary::{TokenKind, Vocabulary};
use std::iter::successors;

/// How much worse an unknown character is than the worst token.
const UNKNOWN_PENALTY: f64 = 10.0;

/// The encoder, with the changes to the text that come first.
#[derive(Debug)]
pub(crate) struct Unigram {
    search: Search,
    /// Ids and scores, in the order that `search` counts.
    tokens: Vec<(u32, f64)>,
    unknown: u32,
    unknown_score: f64,
    /// The token of each byte, where there are all.
    bytes: Option<Box<[u32; 256]>>,
    charsmap: Option<Charsmap>,
    /// Spaces at the ends are taken away, and one is left of several.
    merges_spaces: bool,
}

/// The best way to cut the text up to a byte: its last token, where that begins, and the sum of all.
#[derive(Clone, Copy)]
struct Best {
    id: u32,
    start: usize,
    sum: f64,
}

impl Unigram {
    /// Takes over a vocabulary. There must be an unknown token.
    pub fn new(vocabulary: Vocabulary) -> Result<Unigram, TokenizerError> {
        let unknown = vocabulary
            .special
            .unk
            .ok_or(TokenizerError::MissingSpecial {
                what: "an unknown token",
                key: "tokenizer.ggml.unknown_token_id",
            })?;
        let of_kind = |wanted: fn(TokenKind) -> bool| {
            let kinds = (0u32..).zip(&vocabulary.kinds);
            kinds
                .filter(move |(_, kind)| wanted(**kind))
                .map(|(id, kind)| (id, *kind))
        };
        let score = |id: u32| {
            let score = vocabulary.scores.get(id as usize).copied();
            f64::from(score.unwrap_or(0.0))
        };
        let is_text = |kind| {
            matches!(
                kind,
                TokenKind::Normal | TokenKind::UserDefined | TokenKind::Unused
            )
        };
        // User-defined tokens have a score that beats any other.
        let tokens = of_kind(is_text).map(|(id, kind)| match kind {
            TokenKind::UserDefined => (id, 0.0),
            _ => (id, score(id)),
        });
        let tokens: Vec<(u32, f64)> = tokens.collect();
        let normal = of_kind(|kind| kind == TokenKind::Normal);
        let least = normal
            .map(|(id, _)| score(id))
            .fold(f64::INFINITY, f64::min);
        let mut bytes = Box::new([0; 256]);
        let has_bytes = (0..=u8::MAX).zip(bytes.iter_mut()).all(|(byte, id)| {
            let found = vocabulary.tokens.id_of(text_of_byte(byte));
            *id = found.unwrap_or(unknown);
            found.is_some()
        });
        let texts = tokens.iter().map(|(id, _)| vocabulary.tokens.get(*id));
        Ok(Unigram {
            search: Search::new(texts.map(Option::unwrap_or_default)),
            tokens,
            unknown,
            unknown_score: if least.is_finite() { least } else { 0.0 } - UNKNOWN_PENALTY,
            bytes: has_bytes.then_some(bytes),
            charsmap: vocabulary.charsmap,
            merges_spaces: vocabulary.merges_spaces,
        })
    }

    /// Appends the tokens of a text; `prefix` puts a space before it.
    pub fn encode(&self, text: &str, prefix: bool, out: &mut Vec<u32>) {
        let text = self.normalize(text, prefix);
        let best = self.best(&text);
        let at = |end: usize| best.get(end).map(|best| (end, *best));
        let path = successors(at(text.len()), |(_, best)| at(best.start));
        let path: Vec<(usize, Best)> = path.take_while(|(end, _)| *end > 0).collect();
        let mut after_unknown = false;
        for (end, Best { id, start, .. }) in path.into_iter().rev() {
            match &self.bytes {
                Some(bytes) if id == self.unknown => {
                    let spelt = text.as_bytes().get(start..end).unwrap_or_default();
                    out.extend(spelt.iter().map(|byte| bytes[usize::from(*byte)]));
                }
                _ if id == self.unknown && after_unknown => {}
                _ => out.push(id),
            }
            after_unknown = id == self.unknown;
        }
    }

    /// The best way to cut the text up to each of its bytes.
    fn best(&self, text: &str) -> Vec<Best> {
        let unreached = Best {
            id: self.unknown,
            start: 0,
            sum: f64::NEG_INFINITY,
        };
        let mut best = vec![unreached; text.len() + 1];
        best[0].sum = 0.0;
        for (start, character) in text.char_indices() {
            let before = best[start].sum;
            let mut offer = |n_bytes: usize, id, score: f64| {
                let sum = before + score;
                if let Some(place) = best.get_mut(start + n_bytes)
                    && sum > place.sum
                {
                    *place = Best { id, start, sum };
                }
            };
            let mut is_token = false;
            for (n_bytes, place) in self
                .search
                .prefixes(text.as_bytes().get(start..).unwrap_or_default())
            {
                if let Some((id, score)) = self.tokens.get(place as usize) {
                    offer(n_bytes, *id, *score);
                }
                is_token |= n_bytes == character.len_utf8();
            }
            if !is_token {
                offer(character.len_utf8(), self.unknown, self.unknown_score);
            }
        }
        best
    }

    /// Replaces characters, and spaces by `▁`.
    fn normalize(&self, text: &str, prefix: bool) -> String {
        let mut out = String::with_capacity(text.len() + text.len() / 4 + SPACE.len_utf8());
        let mut in_word = false;
        let mut begins = true;
        self.replaced(text, |character| {
            if character == ' ' {
                in_word = false;
                if !self.merges_spaces {
                    out.push(SPACE);
                }
                return;
            }
            let is_spaced = if begins { prefix } else { self.merges_spaces };
            if !in_word && is_spaced {
                out.push(SPACE);
            }
            (in_word, begins) = (true, false);
            out.push(character);
        });
        out
    }

    /// Calls `each` with every character of the text after replacement.
    fn replaced(&self, mut text: &str, mut each: impl FnMut(char)) {
        while let Some(first) = text.chars().next() {
            let found = self
                .charsmap
                .as_ref()
                .and_then(|charsmap| charsmap.replace(text));
            let n_bytes = match found {
                Some((n_bytes, replacement)) => {
                    replacement.chars().for_each(&mut each);
                    n_bytes
                }
                None => {
                    each(first);
                    first.len_utf8()
                }
            };
            text = text.get(n_bytes..).unwrap_or_default();
        }
    }
}
