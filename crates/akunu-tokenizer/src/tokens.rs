//! The texts of a vocabulary, and their ids.
//!
//! A vocabulary has up to 300,000 tokens and is read whenever a model is loaded, so it is three blocks of
//! memory and not a string and a map entry a token: all texts one after the other, where each ends, and a
//! hash table of ids. Texts are bytes here; that they are UTF-8 was checked when the file was opened.

use crate::table::{Found, Table};
use crate::texts::Texts;
use ahash::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

/// Tokens by id, and ids by text.
#[derive(Debug, Default)]
pub struct Tokens {
    texts: Arc<Texts>,
    /// The ids of all texts; of empty ones the first.
    ids: Table,
    hasher: RandomState,
}

/// Texts that are hashed at a time.
const BATCH: usize = 1024;

/// Two tokens with the same text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Duplicate {
    pub first: u32,
    pub second: u32,
}

impl Tokens {
    /// Numbers the texts. Two of the same text are an error; empty ones are holes in the vocabulary and may
    /// repeat.
    ///
    /// Some texts are hashed in one loop and put into the table in another: in the second one the processor
    /// waits for many slots at once.
    pub(crate) fn new<'a>(
        mut list: impl ExactSizeIterator<Item = &'a [u8]>,
    ) -> Result<Tokens, Duplicate> {
        let n_tokens = list.len();
        let hasher = RandomState::new();
        let mut texts = Texts::with_capacity(n_tokens);
        let mut ids = Table::new(n_tokens);
        let mut hashes = Vec::with_capacity(BATCH);
        while texts.len() < n_tokens {
            let first = texts.len() as u32;
            hashes.clear();
            for text in list.by_ref().take(BATCH.min(n_tokens - texts.len())) {
                texts.push(text);
                hashes.push(hash(&hasher, text));
            }
            for (id, hash) in (first..).zip(&hashes) {
                enter(id, *hash, &texts, &mut ids)?;
            }
            if hashes.is_empty() {
                break;
            }
        }
        Ok(Tokens {
            texts: Arc::new(texts),
            ids,
            hasher,
        })
    }

    /// Number of tokens; ids are below it.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text of a token.
    pub fn get(&self, id: u32) -> Option<&[u8]> {
        self.texts.get(id)
    }

    /// The text of a token as a string.
    pub fn text(&self, id: u32) -> Option<&str> {
        std::str::from_utf8(self.get(id)?).ok()
    }

    /// The token with this text. Tokens without text are not found.
    #[inline]
    pub fn id_of(&self, text: impl AsRef<[u8]>) -> Option<u32> {
        let text = text.as_ref();
        let is_same = |id| self.texts.get(id) == Some(text);
        let found = self.ids.place(hash(&self.hasher, text), is_same);
        found.filter(|_| !text.is_empty())
    }

    /// All texts, in the order of ids.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.texts.iter()
    }

    /// The texts without their ids.
    pub(crate) fn texts(&self) -> &Arc<Texts> {
        &self.texts
    }
}

/// Puts an id into the table; of empty texts the first.
#[inline]
fn enter(id: u32, hash: u64, texts: &Texts, ids: &mut Table) -> Result<(), Duplicate> {
    match ids.find(hash, |other| texts.get(other) == texts.get(id)) {
        Found::Place(_) if texts.get(id) == Some(&[][..]) => {}
        Found::Place(first) => return Err(Duplicate { first, second: id }),
        Found::Vacant(slot) => ids.fill(slot, hash, id),
    }
    Ok(())
}

#[inline]
fn hash(hasher: &RandomState, text: &[u8]) -> u64 {
    let mut state = hasher.build_hasher();
    state.write(text);
    state.finish()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Tokens of a test.
    pub(crate) fn tokens(texts: &[&str]) -> Result<Tokens, Duplicate> {
        Tokens::new(texts.iter().map(|text| text.as_bytes()))
    }

    #[test]
    fn texts_and_ids_are_found() {
        let texts = ["a", "", "Ġb", "", "ab"];
        let tokens = tokens(&texts).unwrap();
        assert_eq!(tokens.len(), 5);
        assert!(tokens.iter().eq(texts.map(str::as_bytes)));
        assert_eq!((tokens.id_of("Ġb"), tokens.id_of("ab")), (Some(2), Some(4)));
        assert_eq!(
            (tokens.get(0), tokens.get(1)),
            (Some(&b"a"[..]), Some(&b""[..]))
        );
        assert_eq!((tokens.get(4), tokens.get(5)), (Some(&b"ab"[..]), None));
        assert_eq!((tokens.id_of(""), tokens.id_of("b")), (None, None));
    }

    #[test]
    fn a_text_has_one_id() {
        let found = tokens(&["a", "b", "", "", "a"]).unwrap_err();
        assert_eq!(
            found,
            Duplicate {
                first: 0,
                second: 4
            }
        );
    }

    #[test]
    fn thousands_are_found() {
        let texts: Vec<String> = (0..5_000).map(|id| format!("token {id}")).collect();
        let tokens = Tokens::new(texts.iter().map(|text| text.as_bytes())).unwrap();
        for (id, text) in (0..).zip(&texts) {
            assert_eq!(tokens.id_of(text), Some(id));
        }
    }
}
