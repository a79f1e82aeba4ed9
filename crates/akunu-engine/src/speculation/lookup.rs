//! What followed the same words before.
//!
//! ```text
//! tokens   a b c d e … a b c          the last three came before: "d e …" is the guess
//! last     hash(a b c) → 2            the latest place where three tokens end
//! before   2 → none                   and the place before that one with the same hash
//! ```
//!
//! Of the places with the same last three tokens the one wins whose tokens before them agree longest, up to
//! [`LONGEST`]; of equals the latest. A look-up follows at most [`MAX_PLACES`] places, so that it takes bounded time in
//! texts that repeat one thing.
//!
//! Where the text went on otherwise after other places, there is a *fork*: of the tokens that came there instead, the most
//! frequent one, and what followed it.

use std::collections::HashMap;

/// Tokens that must agree.
const SHORTEST: usize = 3;
/// Agreeing beyond this says nothing more.
pub(super) const LONGEST: usize = 24;
/// How many earlier places are compared.
const MAX_PLACES: usize = 16;
/// No place.
const NONE: u32 = u32::MAX;

/// The tokens of a sequence, by their last three.
#[derive(Default)]
pub(super) struct Index {
    tokens: Vec<u32>,
    last: HashMap<[u32; SHORTEST], u32>,
    /// For each token the place before it with the same three.
    before: Vec<u32>,
}

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// The tokens that followed the match.
    pub tokens: Vec<u32>,
    /// How many tokens before it agree.
    pub length: usize,
    /// What followed elsewhere.
    pub fork: Option<OtherTokens>,
}

/// Tokens that followed the first `after` tokens of a continuation, instead of its next.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OtherTokens {
    pub after: usize,
    /// At least one.
    pub tokens: Vec<u32>,
}

impl OtherTokens {
    /// Where a continuation differs from another one.
    pub fn between(trunk: &[u32], other: &[u32]) -> Option<OtherTokens> {
        let after = trunk.iter().zip(other).take_while(|(a, b)| a == b).count();
        let differs = after < trunk.len() && after < other.len();
        differs.then(|| OtherTokens {
            after,
            tokens: other[after..].to_vec(),
        })
    }
}

impl Index {
    /// Takes note of the tokens; those that it knows already are not looked at again.
    pub fn follow<'t>(&mut self, len: usize, tokens: impl Iterator<Item = &'t u32>) {
        // A context that was shifted is another text.
        if len < self.tokens.len() {
            *self = Index::default();
        }
        for &token in tokens.skip(self.tokens.len()) {
            self.push(token);
        }
    }

    /// Tokens that it knows.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Its last tokens, as many as an agreement may have.
    pub fn end(&self) -> &[u32] {
        &self.tokens[self.tokens.len().saturating_sub(LONGEST)..]
    }

    /// Takes note of the next token.
    pub fn push(&mut self, token: u32) {
        self.tokens.push(token);
        let place = self.tokens.len() as u32 - 1;
        let before = match self.tokens.last_chunk() {
            Some(three) => self.last.insert(*three, place).unwrap_or(NONE),
            None => NONE,
        };
        self.before.push(before);
    }

    /// At most as many tokens that followed the last ones before.
    pub fn find(&self, most: usize) -> Option<Found> {
        let place = *self.before.last()?;
        self.find_from(place, &self.tokens, most)
    }

    /// At most as many tokens that followed the last ones of another text.
    pub fn find_after(&self, text: &[u32], most: usize) -> Option<Found> {
        let place = *self.last.get(text.last_chunk()?)?;
        self.find_from(place, text, most)
    }

    /// The longest agreement with the end of a text, among the places from this one back.
    fn find_from(&self, mut place: u32, text: &[u32], most: usize) -> Option<Found> {
        let mut places = Vec::with_capacity(MAX_PLACES);
        while place != NONE && places.len() < MAX_PLACES {
            let at = place as usize;
            let ours = self.tokens[..=at].iter().rev();
            let agreeing = ours
                .zip(text.iter().rev())
                .take(LONGEST)
                .take_while(|(a, b)| a == b)
                .count();
            places.push((agreeing, at));
            place = self.before[at];
        }
        let &(length, at) = places.iter().max()?;
        let after = |at: usize| {
            let following = &self.tokens[at + 1..];
            &following[..most.min(following.len())]
        };
        let others = places.iter().map(|&(_, at)| after(at));
        Some(Found {
            tokens: after(at).to_vec(),
            length,
            fork: most_frequent(after(at), others),
        })
    }

    /// How many tokens at the beginning of a text it has somewhere, one after another.
    pub fn repeated(&self, text: &[u32]) -> usize {
        let Some(place) = text.first_chunk().and_then(|three| self.last.get(three)) else {
            return 0;
        };
        let ours = &self.tokens[*place as usize + 1 - SHORTEST..];
        let same = ours.iter().zip(text).take_while(|(a, b)| a == b);
        same.count()
    }
}

/// Of continuations that differ from the trunk, latest first: the one whose first other token most of them have.
fn most_frequent<'t>(
    trunk: &[u32],
    others: impl Iterator<Item = &'t [u32]>,
) -> Option<OtherTokens> {
    let forks: Vec<OtherTokens> = others
        .filter_map(|other| OtherTokens::between(trunk, other))
        .collect();
    let first = |fork: &OtherTokens| (fork.after, fork.tokens[0]);
    let votes = |fork: &OtherTokens| {
        forks
            .iter()
            .filter(|other| first(other) == first(fork))
            .count()
    };
    // Of equals `max_by_key` takes the last.
    let best = (0..forks.len()).rev().max_by_key(|&at| votes(&forks[at]))?;
    forks.into_iter().nth(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(tokens: &[u32]) -> Index {
        let mut index = Index::default();
        index.follow(tokens.len(), tokens.iter());
        index
    }

    /// Fails when fewer than three tokens count, or when the wrong continuation is taken.
    #[test]
    fn what_followed_the_same_three_is_found() {
        let found = index(&[1, 2, 3, 4, 5, 9, 1, 2, 3]).find(2);
        let wanted = Found {
            tokens: vec![4, 5],
            length: 3,
            fork: None,
        };
        assert_eq!(found, Some(wanted));
        assert_eq!(index(&[1, 2, 3, 4, 5, 9, 2, 3]).find(2), None);
        assert_eq!(index(&[]).find(2), None);
        assert_eq!(index(&[7, 7]).find(2), None);
    }

    /// Fails when only the latest place counts.
    #[test]
    fn the_longest_agreement_wins_and_then_the_latest() {
        let text = [5, 1, 2, 3, 40, 6, 1, 2, 3, 50, 5, 1, 2, 3];
        assert_eq!(
            index(&text).find(1).map(|found| found.tokens),
            Some(vec![40])
        );
        let text = [6, 1, 2, 3, 40, 6, 1, 2, 3, 50, 6, 1, 2, 3];
        assert_eq!(
            index(&text).find(1).map(|found| found.tokens),
            Some(vec![50])
        );
    }

    /// Fails when only one continuation is known, when a rarer one is taken for the other, or when it does not begin where
    /// the two part.
    #[test]
    fn what_followed_elsewhere_is_a_fork() {
        // After 1 2 3: first 4 8, twice 4 9 with something else behind, and last 4 5 6.
        let text = [
            1, 2, 3, 4, 8, 0, 1, 2, 3, 4, 9, 7, 1, 2, 3, 4, 9, 0, 1, 2, 3, 4, 5, 6, 1, 2, 3,
        ];
        let found = index(&text).find(3).expect("it came before");
        assert_eq!(found.tokens, [4, 5, 6]);
        let fork = OtherTokens {
            after: 1,
            tokens: vec![9, 0],
        };
        assert_eq!(found.fork, Some(fork));
        let same = index(&[1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3]).find(2);
        assert_eq!(same.expect("it came before").fork, None);
    }

    /// Fails when tokens of a text that is gone are still found.
    #[test]
    fn a_shorter_text_is_another_one() {
        let mut index = index(&[1, 2, 3, 4, 5]);
        let other = [8, 1, 2, 3];
        index.follow(other.len(), other.iter());
        assert_eq!(index.find(1), None);
    }

    /// A text of one token is its own continuation; a look-up must not walk it all.
    #[test]
    fn a_text_that_repeats_one_token_is_found() {
        let found = index(&[7; 1000]).find(4);
        assert_eq!(found.map(|found| found.length), Some(LONGEST));
    }
}
