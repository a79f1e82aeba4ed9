//! The added tokens of a `tokenizer.json`: found in the text before anything else.
//!
//! Most are looked for in the text as it is. Those that are *normalized* are looked for afterwards, in what lies
//! between the others and was normalized, as texts that were normalized themselves.

use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};
use unicode_categories::UnicodeCategories;

use super::file::AddedToken;
use crate::normalizer::Normalizer;
use crate::special::MAX_SPECIAL_BYTES;

/// All added tokens.
#[derive(Debug)]
pub(super) struct Added {
    /// Looked for in the text as it is.
    pub plain: Finder,
    /// Looked for in the normalized text.
    pub normalized: Finder,
}

/// Finds some of the added tokens.
#[derive(Debug)]
pub(super) struct Finder {
    tokens: Vec<AddedToken>,
    /// `None` where there is nothing to find.
    automaton: Option<AhoCorasick>,
}

impl Added {
    pub fn new(tokens: &[AddedToken], normalizer: &Normalizer) -> Result<Added, String> {
        let n_bytes: usize = tokens.iter().map(|token| token.content.len()).sum();
        if n_bytes > MAX_SPECIAL_BYTES {
            return Err(format!(
                "has {n_bytes} bytes of `added_tokens`; at most {MAX_SPECIAL_BYTES} are accepted"
            ));
        }
        let some = |normalized: bool| tokens.iter().filter(move |t| t.normalized == normalized);
        Ok(Added {
            plain: Finder::new(some(false), |text| text.to_string())?,
            normalized: Finder::new(some(true), |text| normalizer.run(text.into()).into_owned())?,
        })
    }

    /// Every added token in a text that is not normalised, and its place including the spaces that it swallows.
    pub fn find_all(&self, text: &str) -> Vec<(Range<usize>, u32)> {
        let mut found = Vec::new();
        self.plain.split(text, true, &mut |part| match part {
            (place, Some(id)) => found.push((place, id)),
            (outer, None) => {
                self.normalized
                    .split(&text[outer.clone()], true, &mut |part| {
                        if let (inner, Some(id)) = part {
                            found.push((outer.start + inner.start..outer.start + inner.end, id));
                        }
                    });
            }
        });
        found
    }
}

impl Finder {
    fn new<'t>(
        tokens: impl Iterator<Item = &'t AddedToken>,
        spell: impl Fn(&str) -> String,
    ) -> Result<Finder, String> {
        let mut spelt: Vec<(String, AddedToken)> = tokens
            .map(|token| (spell(&token.content), token.clone()))
            .filter(|(text, _)| !text.is_empty())
            .collect();
        // Of two that are spelt alike, the later one counts.
        spelt.reverse();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(spelt.iter().map(|(text, _)| text))
            .map_err(|error| format!("has `added_tokens` that cannot be searched for: {error}"))?;
        Ok(Finder {
            automaton: (!spelt.is_empty()).then_some(automaton),
            tokens: spelt.into_iter().map(|(_, token)| token).collect(),
        })
    }

    /// Calls `each` with every part of a text: a token, or what lies between two. Special tokens are text unless
    /// `parse_special`.
    pub fn split(
        &self,
        text: &str,
        parse_special: bool,
        each: &mut dyn FnMut((Range<usize>, Option<u32>)),
    ) {
        let mut done = 0;
        let matches = self.automaton.iter().flat_map(|a| a.find_iter(text));
        for found in matches {
            let Some(token) = self.tokens.get(found.pattern().as_usize()) else {
                continue;
            };
            let is_hidden = token.special && !parse_special;
            // What lies before `done` was swallowed by the token on the left.
            if is_hidden || found.start() < done || !token.may_stand_at(text, found.range()) {
                continue;
            }
            let place = token.with_spaces(text, found.range(), done);
            if done < place.start {
                each((done..place.start, None));
            }
            done = place.end;
            each((place, Some(token.id)));
        }
        if done < text.len() {
            each((done..text.len(), None));
        }
    }
}

impl AddedToken {
    fn may_stand_at(&self, text: &str, place: Range<usize>) -> bool {
        !self.single_word
            || !(text[..place.start].ends_with(is_word) || text[place.end..].starts_with(is_word))
    }

    /// The place with the spaces that the token swallows; what lies before `done` is not its own.
    fn with_spaces(&self, text: &str, place: Range<usize>, done: usize) -> Range<usize> {
        let start = if self.lstrip {
            done + text[done..place.start].trim_end().len()
        } else {
            place.start
        };
        let after = &text[place.end..];
        let n_spaces = if self.rstrip {
            after.len() - after.trim_start().len()
        } else {
            0
        };
        start..place.end + n_spaces
    }
}

/// What a regular expression calls `\w`.
fn is_word(character: char) -> bool {
    character.is_alphabetic()
        || character.is_mark()
        || character.is_number_decimal_digit()
        || character.is_punctuation_connector()
        || matches!(character, '\u{200C}' | '\u{200D}')
}
