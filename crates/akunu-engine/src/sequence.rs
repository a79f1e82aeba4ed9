//! A sequence: its tokens, and the pages that hold their keys and values.

use sha2::{Digest, Sha256};

use crate::adapter::Adapters;
use crate::pool::Name;
use crate::rule::Rule;

/// Tokens and their pages. The pages are the runtime's: it gives them and takes them back.
#[derive(Debug)]
pub(crate) struct Sequence {
    /// No two sequences of a model ever have the same.
    pub id: u64,
    /// All tokens.
    pub tokens: Vec<u32>,
    /// Of how many the keys and values are in the pages. A token that was chosen last is not yet.
    pub cached: usize,
    /// The pages for each kind of layers, by their place in the sequence. A window has given back what it has passed.
    pub pages: Vec<Vec<Option<u32>>>,
    /// The names of the pages that are full.
    names: Vec<Name>,
    /// Up to here keys and values follow from the tokens alone: not those that were moved or came from a file.
    pub pure: usize,
    /// Windows hold nothing that a shorter sequence than this would see: it came from a file.
    pub floor: usize,
    /// Where its row of the page table was.
    pub seat: u32,
    /// Tokens of the history that the device knows at that seat.
    pub known: usize,
    /// How its tokens are chosen.
    pub rule: Rule,
    /// Tokens that were added to the texts that other sequences guess from.
    pub told: usize,
    /// Where its states lie, if the model's layers have some.
    pub states: States,
    adapters: Adapters,
    /// What the name of its first page follows from: pages of other adapters have other names.
    first_name: Name,
}

/// A state after some tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// How many.
    pub at: usize,
    /// Its block.
    pub block: u32,
}

/// The states of a sequence.
#[derive(Debug, Default)]
pub(crate) struct States {
    /// One that nothing overwrites.
    pub base: Option<State>,
    /// The one that rows go on from in place. Chains under way count.
    pub live: Option<State>,
    /// The last one that its prompt left at the end of a page.
    pub prompt: Option<State>,
    /// After how many tokens the numbers of the state were last looked at.
    pub checked: Option<usize>,
    /// The states that the step under way writes.
    pub left: Left,
    /// Blocks to write to.
    pub spare: Vec<u32>,
}

/// The states that a step writes.
#[derive(Debug, Default)]
pub(crate) enum Left {
    #[default]
    Nothing,
    /// A piece of a prompt went on from a state, and left one at the end of a page and one at its own.
    Run {
        from: Option<State>,
        snapshot: Option<State>,
        end: State,
    },
    /// That of the next tokens, and those of guesses in the order of their rows.
    Next(Vec<State>),
}

impl Sequence {
    pub fn new(id: u64, n_kinds: usize) -> Sequence {
        Sequence {
            id,
            tokens: Vec::new(),
            cached: 0,
            pages: vec![Vec::new(); n_kinds],
            names: Vec::new(),
            pure: usize::MAX,
            floor: 0,
            seat: u32::MAX,
            known: 0,
            rule: Rule::default(),
            told: 0,
            states: States::default(),
            adapters: Adapters::none(),
            first_name: Name::default(),
        }
    }

    /// The adapters that its keys and values are computed with.
    pub fn adapters(&self) -> &Adapters {
        &self.adapters
    }

    /// Other adapters, for a sequence without tokens.
    pub fn set_adapters(&mut self, adapters: Adapters) {
        self.first_name = adapters.name();
        self.adapters = adapters;
        self.names.clear();
    }

    /// The longest beginning of `tokens` that the pages hold.
    pub fn common(&self, tokens: &[u32]) -> usize {
        let pairs = self.tokens[..self.cached].iter().zip(tokens);
        pairs.take_while(|(a, b)| a == b).count()
    }

    /// The name of page `index`, whose tokens must be there.
    pub fn name(&mut self, index: usize, page: usize) -> Name {
        while self.names.len() <= index {
            let at = self.names.len();
            let before = self.names.last().copied().unwrap_or(self.first_name);
            let tokens = &self.tokens[at * page..(at + 1) * page];
            self.names.push(name_after(&before, tokens));
        }
        self.names[index]
    }

    /// Takes note that all but the first `len` tokens are gone.
    pub fn forget_after(&mut self, len: usize, page: usize) {
        self.tokens.truncate(len);
        self.cached = self.cached.min(len);
        self.known = self.known.min(len);
        self.told = self.told.min(len);
        self.names.truncate(len / page);
        if len <= self.pure {
            self.pure = usize::MAX;
        }
        if len == 0 {
            self.floor = 0;
        }
    }

    /// Other tokens, in pages whose content does not follow from them beyond `pure`.
    pub fn replace(&mut self, tokens: Vec<u32>, cached: usize, pure: usize) {
        self.tokens = tokens;
        self.cached = cached;
        self.names.clear();
        self.told = 0;
        self.pure = pure;
    }
}

/// The name of a page with these tokens after a page of another name.
pub(crate) fn name_after(before: &Name, tokens: &[u32]) -> Name {
    let mut hash = Sha256::new();
    hash.update(before);
    hash.update(bytemuck::cast_slice::<u32, u8>(tokens));
    let mut name = Name::default();
    name.copy_from_slice(&hash.finalize()[..16]);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sequences share a page only if all before it is the same too.
    #[test]
    fn a_name_depends_on_all_tokens_before() {
        let mut names = Vec::new();
        for tokens in [[1, 2, 3, 4], [1, 2, 3, 5], [9, 2, 3, 4]] {
            let mut sequence = Sequence::new(1, 1);
            sequence.tokens = tokens.to_vec();
            names.push([sequence.name(0, 2), sequence.name(1, 2)]);
        }
        assert_eq!(names[0][0], names[1][0]);
        assert_ne!(names[0][1], names[1][1]);
        assert_ne!(names[0][1], names[2][1]);
    }

    #[test]
    fn names_follow_the_tokens_when_they_change() {
        let mut sequence = Sequence::new(1, 1);
        sequence.tokens = vec![1, 2, 3, 4];
        let before = sequence.name(1, 2);
        sequence.forget_after(3, 2);
        sequence.tokens.push(7);
        assert_ne!(sequence.name(1, 2), before);
        sequence.forget_after(3, 2);
        sequence.tokens.push(4);
        assert_eq!(sequence.name(1, 2), before);
    }
}
