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
//! A piece of n bytes takes O(n log n) steps. The `tokenizers` crate has the same algorithm, and is what this
//! is tested against; but its tables are strings, a map entry for each token and each merge, and making
//! them took most of the time that a model takes to load. Here everything is an id (see [`Tokens`] and
//! [`Merges`]).

use crate::cutter::Cutter;
use crate::error::TokenizerError;
use crate::merges::Merges;
use crate::spelling::{SPACE, character_of, text_of_byte};
use crate::tokens::Tokens;
use crate::vocabulary::{Algorithm, Vocabulary};
use ahash::AHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// The encoder.
#[derive(Debug)]
pub(crate) struct Bpe {
    cutter: Cutter,
    tokens: Tokens,
    merges: Merges,
    alphabet: Alphabet,
    /// The tokens of the 256 bytes, where they have one.
    bytes: Box<[Option<u32>; 256]>,
    /// A piece that is a token as a whole is not merged from its bytes.
    ignore_merges: bool,
}

/// What the first tokens of a piece are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alphabet {
    /// Bytes, each spelt as one printable character. A byte without a token is left out.
    Bytes,
    /// Characters, with `▁` for a space; the bytes `<0x0A>` of a character that is no token. A character
    /// whose bytes are not all tokens is left out.
    Characters,
}

impl Bpe {
    /// Takes over a vocabulary.
    pub fn new(vocabulary: Vocabulary) -> Result<Bpe, TokenizerError> {
        let alphabet = match vocabulary.algorithm {
            Algorithm::ByteLevelBpe => Alphabet::Bytes,
            _ => Alphabet::Characters,
        };
        let tokens = vocabulary.tokens;
        let mut bytes = Box::new([None; 256]);
        for (byte, id) in (0..=u8::MAX).zip(bytes.iter_mut()) {
            *id = match alphabet {
                Alphabet::Bytes => tokens.id_of(character_of(byte).to_string()),
                Alphabet::Characters => tokens.id_of(text_of_byte(byte)),
            };
        }
        Ok(Bpe {
            cutter: Cutter::new(vocabulary.pre)?,
            tokens,
            merges: vocabulary.merges,
            alphabet,
            bytes,
            ignore_merges: vocabulary.pre.ignore_merges,
        })
    }

    /// Appends the tokens of `text`.
    pub fn encode(&self, text: &str, out: &mut Vec<u32>) {
        match self.alphabet {
            Alphabet::Bytes => self.encode_pieces(text, out),
            Alphabet::Characters => {
                self.encode_pieces(&text.replace(' ', SPACE.encode_utf8(&mut [0; 4])), out);
            }
        }
    }

    /// Words repeat: the tokens of one that was seen before are copied from where they stand.
    fn encode_pieces(&self, text: &str, out: &mut Vec<u32>) {
        let mut seen: AHashMap<&str, Range<usize>> = AHashMap::new();
        let mut chain = Chain::default();
        self.cutter.cut(text, &mut |piece| {
            if let Some(before) = seen.get(piece) {
                return out.extend_from_within(before.clone());
            }
            let start = out.len();
            match self.whole(piece) {
                Some(id) => out.push(id),
                None => {
                    self.first_tokens(piece, &mut chain);
                    chain.join_all(&self.merges);
                    out.extend(chain.ids());
                }
            }
            seen.insert(piece, start..out.len());
        });
    }

    /// The token that is the whole piece, where merges may be ignored.
    fn whole(&self, piece: &str) -> Option<u32> {
        if !self.ignore_merges {
            return None;
        }
        match self.alphabet {
            Alphabet::Bytes => {
                let spelt: String = piece.bytes().map(character_of).collect();
                self.tokens.id_of(spelt)
            }
            Alphabet::Characters => self.tokens.id_of(piece),
        }
    }

    fn first_tokens(&self, piece: &str, chain: &mut Chain) {
        chain.clear();
        if self.alphabet == Alphabet::Bytes {
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
