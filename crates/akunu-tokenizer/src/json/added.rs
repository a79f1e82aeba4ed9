//! The added tokens of a `tokenizer.json`: found in the text before anything else.
//!
//! Most are looked for in the text as it is. Those that are *normalized* are looked for afterwards, in what lies
//! between the others and was normalized, as texts that were normalized themselves.

use std::ops::Range;

use unicode_categories::UnicodeCategories;

use super::file::AddedToken;
use crate::normalizer::Normalizer;
use crate::search::Search;
use crate::special::{MAX_SPECIAL_BYTES, MAX_SPECIAL_TOKEN_BYTES};

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
    search: Search,
}

impl Added {
    pub fn new(tokens: &[AddedToken], normalizer: &Normalizer) -> Result<Added, String> {
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
        let mut spelt: Vec<(String, AddedToken)> = Vec::new();
        let mut n_bytes = 0;
        for token in tokens {
            refuse_long(token, token.content.len())?;
            let text = spell(&token.content);
            refuse_long(token, text.len())?;
            n_bytes += text.len();
            if n_bytes > MAX_SPECIAL_BYTES {
                return Err(format!(
                    "has more than {MAX_SPECIAL_BYTES} bytes of `added_tokens`"
                ));
            }
            spelt.push((text, token.clone()));
        }
        // Of two that are spelt alike, the later one counts.
        spelt.reverse();
        Ok(Finder {
            search: Search::new(spelt.iter().map(|(text, _)| text.as_bytes())),
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
        for (found, at) in self.search.find_all(text) {
            let Some(token) = self.tokens.get(at as usize) else {
                continue;
            };
            let is_hidden = token.special && !parse_special;
            // What lies before `done` was swallowed by the token on the left.
            if is_hidden || found.start < done || !token.may_stand_at(text, found.clone()) {
                continue;
            }
            let place = token.with_spaces(text, found, done);
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

/// Refuses a token that has too many bytes, in the file or after it was normalized.
fn refuse_long(token: &AddedToken, n_bytes: usize) -> Result<(), String> {
    match n_bytes > MAX_SPECIAL_TOKEN_BYTES {
        true => Err(format!(
            "has the id {} in `added_tokens` with a `content` of {n_bytes} bytes; at most {MAX_SPECIAL_TOKEN_BYTES} are accepted",
            token.id
        )),
        false => Ok(()),
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
