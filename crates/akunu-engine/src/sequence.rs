//! A sequence: its tokens and images, and the pages that hold their keys and values.

use sha2::{Digest, Sha256};

use crate::adapter::Adapters;
use crate::images::{Content, Images};
use crate::pool::Name;
use crate::rule::Rule;

/// Tokens and their pages. The pages are the runtime's: it gives them and takes them back.
#[derive(Debug)]
pub(crate) struct Sequence {
    /// No two sequences of a model ever have the same.
    pub id: u64,
    /// All tokens.
    pub tokens: Vec<u32>,
    /// The images among them; while a prompt is read, those that are still to come too.
    pub images: Images,
    /// Whether the rows of an image see all of it; a part of an image is useless then.
    pub has_whole_images: bool,
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
            images: Images::default(),
            has_whole_images: false,
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

    /// Its tokens, and their images.
    pub fn content(&self) -> Content {
        Content {
            tokens: self.tokens.clone(),
            images: self.images.clipped(self.tokens.len()),
        }
    }

    /// Whether it has these tokens and images, and no others.
    pub fn is(&self, content: &Content) -> bool {
        let len = content.tokens.len();
        let same = self.agrees_with(&content.images, len) == len;
        self.tokens == content.tokens && same
    }

    /// The longest beginning of some content that the pages hold.
    pub fn common(&self, content: &Content) -> usize {
        let pairs = self.tokens[..self.cached].iter().zip(&content.tokens);
        let len = pairs.take_while(|(a, b)| a == b).count();
        self.agrees_with(&content.images, len)
    }

    /// Of the next `most` tokens of a prompt, how many can be read in one step: all, but where an image has to be read as a
    /// whole and is longer than what is left of them. At least one, as a session takes no image that is longer than its chunk.
    pub fn whole_images(&self, most: usize) -> usize {
        match self.has_whole_images {
            true => match self.images.whole_images(self.cached, most) {
                0 => most,
                n => n,
            },
            false => most,
        }
    }

    /// Up to `len`, how many slots have the same images.
    fn agrees_with(&self, images: &Images, len: usize) -> usize {
        self.images.agree(images, len, self.has_whole_images)
    }

    /// The name of page `index`, whose tokens must be there.
    pub fn name(&mut self, index: usize, page: usize) -> Name {
        while self.names.len() <= index {
            let at = self.names.len();
            let before = self.names.last().copied().unwrap_or(self.first_name);
            let slots = at * page..(at + 1) * page;
            let mut hash = Sha256::new();
            hash.update(before);
            hash.update(bytemuck::cast_slice::<u32, u8>(&self.tokens[slots.clone()]));
            self.images
                .hash_into(&slots, self.has_whole_images, &mut hash);
            let mut name = Name::default();
            name.copy_from_slice(&hash.finalize()[..16]);
            self.names.push(name);
        }
        self.names[index]
    }

    /// Takes note that all but the first `len` tokens are gone.
    pub fn forget_after(&mut self, len: usize, page: usize) {
        self.tokens.truncate(len);
        self.cached = self.cached.min(len);
        self.known = self.known.min(len);
        self.told = self.told.min(len);
        let cut = self.images.clip(len);
        if let Some(start) = cut.filter(|_| self.has_whole_images) {
            // The rows that are left have seen those that are gone.
            self.cached = self.cached.min(start);
        }
        self.forget_names_after(self.cached, page);
        if len <= self.pure {
            self.pure = usize::MAX;
        }
        if len == 0 {
            self.floor = 0;
        }
    }

    /// Forgets the names of pages that are not full with the first `len` tokens.
    pub fn forget_names_after(&mut self, len: usize, page: usize) {
        self.names.truncate(len / page);
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
