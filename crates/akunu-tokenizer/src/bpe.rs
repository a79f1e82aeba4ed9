//! BPE by a list of merges.
//!
//! The text is cut into pieces; the bytes of a piece (or its characters, see [`Alphabet`]) are a chain of
//! tokens. As long as two neighbours can be joined, the two of the lowest rank are; of equal ranks the
//! leftmost pair. What is left are the piece's tokens.
//!
//! ```text
//! candidates = every pair of neighbours that has a rank
//! while candidates: take the lowest (rank, place); skip it when one of the two was joined meanwhile;
//!                   join; the new token makes new candidates with its neighbours
//! ```
//!
//! A piece of n bytes takes O(n log n) steps. The package `tokenizers` has the same algorithm, and is what this
//! is tested against; but its tables are strings, a map entry for each token and each merge, and a GGUF file would load
//! five times as long. Here everything is an id (see [`Tokens`] and [`Merges`]).

use crate::merges::Merges;
use crate::spelling::{character_of, text_of_byte};
use crate::tokens::Tokens;
use ahash::AHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// The encoder of pieces.
#[derive(Debug)]
pub(crate) struct Bpe {
    tokens: Tokens,
    merges: Merges,
    rules: BpeRules,
    /// The tokens of the 256 bytes, where they have one.
    bytes: Box<[Option<u32>; 256]>,
}

/// What a vocabulary says besides its tokens and merges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BpeRules {
    pub alphabet: Alphabet,
    /// A piece that is a token as a whole is not merged from its bytes.
    pub ignore_merges: bool,
}

/// What the first tokens of a piece are. What has no token is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alphabet {
    /// Bytes, each spelt as one printable character.
    Bytes,
    /// Characters, and the bytes `<0x0A>` of a character that is no token, if all of them are tokens.
    CharactersOrBytes,
}

/// The words of a text so far. Words repeat: the tokens of one that was seen before are copied from where they stand.
#[derive(Debug, Default)]
pub(crate) struct SeenWords {
    places: AHashMap<Box<str>, Range<usize>>,
    chain: Chain,
}

impl Bpe {
    /// Takes over a vocabulary.
    pub fn new(tokens: Tokens, merges: Merges, rules: BpeRules) -> Bpe {
        let mut bytes = Box::new([None; 256]);
        for (byte, id) in (0..=u8::MAX).zip(bytes.iter_mut()) {
            *id = match rules.alphabet {
                Alphabet::Bytes => tokens.id_of(character_of(byte).to_string()),
                Alphabet::CharactersOrBytes => tokens.id_of(text_of_byte(byte)),
            };
        }
        Bpe {
            tokens,
            merges,
            rules,
            bytes,
        }
    }

    /// Appends the tokens of a piece. `seen` belongs to `out` and is empty where that is.
    pub fn encode(&self, piece: &str, seen: &mut SeenWords, out: &mut Vec<u32>) {
        if let Some(before) = seen.places.get(piece) {
            return out.extend_from_within(before.clone());
        }
        let start = out.len();
        if let Some(id) = self.whole(piece) {
            out.push(id);
        } else {
            self.first_tokens(piece, &mut seen.chain);
            seen.chain.join_all(&self.merges);
            out.extend(seen.chain.ids());
        }
        seen.places.insert(piece.into(), start..out.len());
    }

    /// The token that is the whole piece, where merges may be ignored.
    fn whole(&self, piece: &str) -> Option<u32> {
        if !self.rules.ignore_merges {
            return None;
        }
        if self.rules.alphabet == Alphabet::Bytes {
            let spelt: String = piece.bytes().map(character_of).collect();
            self.tokens.id_of(spelt)
        } else {
            self.tokens.id_of(piece)
        }
    }

    fn first_tokens(&self, piece: &str, chain: &mut Chain) {
        chain.clear();
        if self.rules.alphabet == Alphabet::Bytes {
            return self.byte_ids(piece).flatten().for_each(|id| chain.push(id));
        }
        for (start, character) in piece.char_indices() {
            let character = &piece[start..start + character.len_utf8()];
            match self.tokens.id_of(character) {
                Some(id) => chain.push(id),
                None if self.byte_ids(character).all(|id| id.is_some()) => {
                    let ids = self.byte_ids(character).flatten();
                    ids.for_each(|id| chain.push(id));
                }
                None => {}
            }
        }
    }

    fn byte_ids(&self, text: &str) -> impl Iterator<Item = Option<u32>> {
        text.bytes().map(|byte| self.bytes[usize::from(byte)])
    }
}

/// A token of the chain; its place in the list is where it began.
#[derive(Debug)]
struct Link {
    id: u32,
    prev: usize,
    next: usize,
}

/// Beyond either end of the chain, or joined to a token on the left.
const NONE: usize = usize::MAX;

/// The tokens of a piece, and what may be joined in it.
#[derive(Debug, Default)]
struct Chain {
    links: Vec<Link>,
    /// Rank and place of the token on the left, the lowest first.
    candidates: BinaryHeap<Reverse<(u32, usize)>>,
}

impl Chain {
    fn clear(&mut self) {
        self.links.clear();
        self.candidates.clear();
    }

    fn push(&mut self, id: u32) {
        let at = self.links.len();
        if let Some(last) = self.links.last_mut() {
            last.next = at;
        }
        self.links.push(Link {
            id,
            prev: at.checked_sub(1).unwrap_or(NONE),
            next: NONE,
        });
    }

    /// Notes the token at `left` and the one after it, if they can be joined.
    fn consider(&mut self, left: usize, merges: &Merges) {
        let pair = self.links.get(left).and_then(|link| {
            let right = self.links.get(link.next)?;
            merges.rank(link.id, right.id)
        });
        self.candidates
            .extend(pair.map(|rank| Reverse((rank, left))));
    }

    /// Joins until nothing can be joined.
    fn join_all(&mut self, merges: &Merges) {
        for left in 0..self.links.len() {
            self.consider(left, merges);
        }
        while let Some(Reverse((rank, at))) = self.candidates.pop() {
            let Some(merge) = merges.get(rank) else {
                continue;
            };
            let Some(right) = self.links.get(self.links[at].next) else {
                continue;
            };
            // Another token than the pair's: one of the two was joined meanwhile.
            if (self.links[at].id, right.id) != (merge.left, merge.right) {
                continue;
            }
            let (gone, next) = (self.links[at].next, right.next);
            self.links[gone].next = NONE;
            self.links[gone].prev = NONE;
            if let Some(follower) = self.links.get_mut(next) {
                follower.prev = at;
            }
            self.links[at].id = merge.joined;
            self.links[at].next = next;
            self.consider(self.links[at].prev, merges);
            self.consider(at, merges);
        }
    }

    /// What is left, in order.
    fn ids(&self) -> impl Iterator<Item = u32> {
        let first = self.links.first();
        let chain = std::iter::successors(first, |link| self.links.get(link.next));
        chain.map(|link| link.id)
    }
}
