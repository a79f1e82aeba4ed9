//! The merges of a BPE vocabulary: which two neighbours become one token, and which first.

use crate::table::{Found, Table};
use crate::tokens::Tokens;
use ahash::RandomState;

/// Two tokens and the one that they become, by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merge {
    /// The token on the left.
    pub left: u32,
    /// The token on the right.
    pub right: u32,
    /// The token with the text of both.
    pub joined: u32,
}

/// All merges. The rank of one is its place in the file; low ranks go first.
#[derive(Debug, Default)]
pub struct Merges {
    by_rank: Vec<Merge>,
    /// The rank of each pair.
    ranks: Table,
    hasher: RandomState,
}

/// A merge that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BadMerge {
    /// It is not two texts.
    NoPair { index: usize },
    /// One of its texts, or both together, is no token.
    Unknown { index: usize, token: String },
}

impl Merges {
    /// Numbers the pairs, each the texts of two tokens that are one token together; `None` stands for what is no pair.
    pub(crate) fn read<'a>(
        pairs: impl ExactSizeIterator<Item = Option<(&'a [u8], &'a [u8])>>,
        tokens: &Tokens,
    ) -> Result<Merges, BadMerge> {
        let mut by_rank: Vec<Merge> = Vec::with_capacity(pairs.len());
        for (index, pair) in pairs.enumerate() {
            let (left, right) = pair.ok_or(BadMerge::NoPair { index })?;
            let id_of = |token: &[u8]| {
                let unknown = || BadMerge::Unknown {
                    index,
                    token: String::from_utf8_lossy(token).into_owned(),
                };
                tokens.id_of(token).ok_or_else(unknown)
            };
            // Most vocabularies have their tokens in the order of merges.
            let next = by_rank.last().map_or(0, |merge| merge.joined + 1);
            let is_next = tokens.get(next).and_then(|text| text.strip_prefix(left)) == Some(right);
            by_rank.push(Merge {
                left: id_of(left)?,
                right: id_of(right)?,
                joined: if is_next {
                    next
                } else {
                    id_of(&[left, right].concat())?
                },
            });
        }
        Ok(Merges::new(by_rank))
    }

    /// A pair that stands twice has the later rank, as the `tokenizers` crate has it: so the last ones go
    /// into the table first.
    fn new(by_rank: Vec<Merge>) -> Merges {
        let hasher = RandomState::new();
        let mut ranks = Table::new(by_rank.len());
        for (rank, merge) in by_rank.iter().enumerate().rev() {
            let hash = hash(&hasher, merge.pair());
            let is_same = |rank| pair_of(&by_rank, rank) == Some(merge.pair());
            if let Found::Vacant(slot) = ranks.find(hash, is_same) {
                ranks.fill(slot, hash, rank as u32);
            }
        }
        Merges {
            by_rank,
            ranks,
            hasher,
        }
    }

    /// The rank of a pair, if its tokens can be joined.
    #[inline]
    pub(crate) fn rank(&self, left: u32, right: u32) -> Option<u32> {
        let pair = (left, right);
        let is_same = |rank| pair_of(&self.by_rank, rank) == Some(pair);
        self.ranks.place(hash(&self.hasher, pair), is_same)
    }

    /// The merge of a rank.
    pub fn get(&self, rank: u32) -> Option<Merge> {
        self.by_rank.get(rank as usize).copied()
    }

    /// Number of merges.
    pub fn len(&self) -> usize {
        self.by_rank.len()
    }

    /// Whether there are no merges.
    pub fn is_empty(&self) -> bool {
        self.by_rank.is_empty()
    }
}

impl Merge {
    fn pair(&self) -> (u32, u32) {
        (self.left, self.right)
    }
}

fn pair_of(by_rank: &[Merge], rank: u32) -> Option<(u32, u32)> {
    by_rank.get(rank as usize).map(Merge::pair)
}

fn hash(hasher: &RandomState, (left, right): (u32, u32)) -> u64 {
    hasher.hash_one(u64::from(left) << 32 | u64::from(right))
}

/// `"left right"` as a GGUF file has it. A merge may itself begin with a space, so the search begins after the first byte.
pub(crate) fn split(merge: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = 1 + merge.get(1..)?.iter().position(|byte| *byte == b' ')?;
    let (left, right) = (merge.get(..space)?, merge.get(space + 1..)?);
    (!right.is_empty()).then_some((left, right))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::tests::tokens;

    fn read(texts: &[&str], tokens: &Tokens) -> Merges {
        Merges::read(texts.iter().map(|text| split(text.as_bytes())), tokens).unwrap()
    }

    #[test]
    fn merges_are_split_at_the_first_space_that_is_not_their_first_character() {
        let parts = |merge: &'static str| split(merge.as_bytes());
        assert_eq!(parts("Ġ t"), Some(("Ġ".as_bytes(), &b"t"[..])));
        assert_eq!(parts("  a"), Some((&b" "[..], &b"a"[..])));
        assert_eq!(parts("a  "), Some((&b"a"[..], &b" "[..])));
        for bad in ["", "a", "ab", "a ", " "] {
            assert_eq!(parts(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn ranks_are_found_by_pair() {
        let tokens = tokens(&["a", "b", "ab", "ba", "aba"]).unwrap();
        let merges = read(&["a b", "b a", "ab a", "a ba"], &tokens);
        assert_eq!(merges.rank(0, 1), Some(0));
        assert_eq!((merges.rank(2, 0), merges.rank(0, 3)), (Some(2), Some(3)));
        assert_eq!((merges.rank(0, 0), merges.rank(9, 0)), (None, None));
        assert_eq!(merges.get(3).map(|merge| merge.joined), Some(4));
        let twice = read(&["a b", "b a", "a b"], &tokens);
        assert_eq!(twice.rank(0, 1), Some(2));
    }
}
