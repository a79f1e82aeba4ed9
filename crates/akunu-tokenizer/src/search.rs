//! Finds many texts in one: the leftmost, and of those that begin at the same place the longest.
//!
//! The texts are sorted. Of those that are not greater than what is left to search, take the greatest: it begins with
//! every text that the rest begins with. So the longest of these is itself, or the longest text that it begins with, or
//! the longest one that this begins with, and so on.
//!
//! ```text
//! texts   <a   <a b>   <a b>c   <b
//! rest    <a bc          the greatest that is not greater is <a b>c; four bytes are the same, so <a is found
//! ```
//!
//! `aho_corasick` finds the same. Its time to load grows with the square of the number of texts: 26 s for 100,000.

use crate::texts::Texts;
use std::ops::Range;

/// Texts to look for.
#[derive(Debug)]
pub(crate) struct Search {
    /// Sorted, each once, none of them empty.
    texts: Texts,
    /// The place of each in the list that they came from; of equal ones the first.
    places: Vec<u32>,
    /// The longest other text that each begins with.
    shorter: Vec<Option<u32>>,
    /// The first text whose first byte is not below 0, 1, … 256.
    firsts: Vec<u32>,
}

impl Search {
    pub fn new<'t>(texts: impl Iterator<Item = &'t [u8]>) -> Search {
        let mut sorted: Vec<(&[u8], u32)> = texts.zip(0..).filter(|(t, _)| !t.is_empty()).collect();
        sorted.sort_unstable();
        sorted.dedup_by_key(|(text, _)| *text);
        let first_byte = |text: &[u8]| text.first().copied().map_or(0, u16::from);
        let first = |byte| sorted.partition_point(|(text, _)| first_byte(text) < byte) as u32;
        let mut search = Search {
            texts: Texts::with_capacity(sorted.len()),
            places: sorted.iter().map(|(_, place)| *place).collect(),
            shorter: Vec::with_capacity(sorted.len()),
            firsts: (0..=256).map(first).collect(),
        };
        // Each begins with the one before it.
        let mut beginnings: Vec<(&[u8], u32)> = Vec::new();
        for ((text, _), at) in sorted.iter().zip(0..) {
            while beginnings
                .pop_if(|(begin, _)| !text.starts_with(begin))
                .is_some()
            {}
            search.shorter.push(beginnings.last().map(|(_, at)| *at));
            search.texts.push(text);
            beginnings.push((text, at));
        }
        search
    }

    /// All texts in `text` that do not overlap: where, and their place in the list.
    pub fn find_all(&self, text: &str) -> impl Iterator<Item = (Range<usize>, u32)> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let found = self.find(text.as_bytes(), from)?;
            from = found.0.end;
            Some(found)
        })
    }

    /// The first text from a byte on.
    pub fn find(&self, text: &[u8], from: usize) -> Option<(Range<usize>, u32)> {
        (from..text.len()).find_map(|at| {
            let (n_bytes, place) = self.longest(text.get(at..)?)?;
            Some((at..at + n_bytes, place))
        })
    }

    /// The longest text that `rest` begins with: its bytes and its place in the list.
    #[inline]
    fn longest(&self, rest: &[u8]) -> Option<(usize, u32)> {
        self.prefixes(rest).next()
    }

    /// Every text that `rest` begins with, the longest first: its bytes and its place in the list.
    #[inline]
    pub fn prefixes(&self, rest: &[u8]) -> impl Iterator<Item = (usize, u32)> {
        let first = self.greatest(rest);
        let n_same = first.and_then(|at| {
            let same = self.texts.get(at)?.iter().zip(rest);
            Some(same.take_while(|(a, b)| a == b).count())
        });
        let shorter = |at: &u32| *self.shorter.get(*at as usize)?;
        std::iter::successors(first, shorter).filter_map(move |at| {
            let n_bytes = self.texts.get(at)?.len();
            let place = *self.places.get(at as usize)?;
            (Some(n_bytes) <= n_same).then_some((n_bytes, place))
        })
    }

    /// The greatest text that is not greater than `rest` and has its first byte.
    #[inline]
    fn greatest(&self, rest: &[u8]) -> Option<u32> {
        let first = usize::from(*rest.first()?);
        let (least, end) = (*self.firsts.get(first)?, *self.firsts.get(first + 1)?);
        let (mut low, mut high) = (least, end);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.texts.get(middle)? <= rest {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        (low > least).then(|| low - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aho_corasick::{AhoCorasick, MatchKind};
    use proptest::prelude::*;

    proptest! {
        /// Few letters, so that texts begin with each other, overlap and repeat.
        #[test]
        fn finds_what_aho_corasick_finds(
            texts in prop::collection::vec("[abé]{0,6}", 0..40),
            text in "[abcé]{0,60}",
        ) {
            let search = Search::new(texts.iter().map(|text| text.as_bytes()));
            let found: Vec<(Range<usize>, &str)> = search
                .find_all(&text)
                .map(|(range, place)| (range, texts[place as usize].as_str()))
                .collect();
            let texts = texts.iter().filter(|text| !text.is_empty());
            let other = AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .build(texts)
                .unwrap();
            let other: Vec<(Range<usize>, &str)> = other
                .find_iter(&text)
                .map(|found| (found.range(), &text[found.range()]))
                .collect();
            prop_assert_eq!(found, other);
        }
    }

    #[test]
    fn of_equal_texts_the_first_is_found() {
        let texts = ["b", "", "a", "b", "a"];
        let search = Search::new(texts.iter().map(|text| text.as_bytes()));
        let found: Vec<_> = search.find_all("ab").collect();
        assert_eq!(found, [(0..1, 2), (1..2, 0)]);
    }
}
