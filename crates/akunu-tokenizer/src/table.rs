//! A hash table of numbers for keys that lie elsewhere.
//!
//! Tokens and merges are kept in lists; what is needed besides is their place by key. A slot is the upper
//! half of the key's hash and the key's place. A key is in the first free slot from its hash on, so the way
//! to it ends at an empty slot. At least half of the slots are empty. The table never grows: its maker knows
//! from the file how many keys come.
//!
//! `hashbrown::HashTable` would do the same in 5 bytes a slot instead of 8. With it the vocabulary of Gemma 3 (262,144 tokens, which
//! are put in once and hardly looked up) took 45 ms to load instead of 35, that of Llama 3 a tenth longer, that of Qwen 2 a tenth
//! less, and that of SmolLM2 13 ms instead of 17 (medians of five or more in turn, on two busy cores): a slot of ours is one place
//! in memory, one of its slots is two.

/// An empty slot. Places stay below 2^32 - 1, so no other slot looks like it.
const EMPTY: u64 = u64::MAX;

/// Places by hash.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// A power of two of them, so that a mask of the hash is the first slot; or none.
    slots: Vec<u64>,
}

/// Where a key is, or where it may be put.
pub(crate) enum Found {
    /// The place of the key.
    Place(u32),
    /// The empty slot for the key.
    Vacant(Slot),
}

/// A slot of a table.
#[derive(Clone, Copy)]
pub(crate) struct Slot(usize);

impl Table {
    /// A table for at most this many keys.
    pub fn new(n_keys: usize) -> Table {
        Table {
            slots: vec![EMPTY; (2 * n_keys.max(1)).next_power_of_two()],
        }
    }

    /// Looks for the key with this hash; `is_key` says whether it is the one at a place.
    #[inline]
    pub fn find(&self, hash: u64, is_key: impl Fn(u32) -> bool) -> Found {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots.get(at).copied().unwrap_or(EMPTY);
            if slot == EMPTY {
                return Found::Vacant(Slot(at));
            }
            if slot >> 32 == hash >> 32 && is_key(slot as u32) {
                return Found::Place(slot as u32);
            }
            at = (at + 1) & mask;
        }
    }

    /// The place of the key with this hash.
    #[inline]
    pub fn place(&self, hash: u64, is_key: impl Fn(u32) -> bool) -> Option<u32> {
        match self.find(hash, is_key) {
            Found::Place(place) => Some(place),
            Found::Vacant(_) => None,
        }
    }

    /// Fills the slot that [`Table::find`] gave for this hash.
    #[inline]
    pub fn fill(&mut self, slot: Slot, hash: u64, place: u32) {
        if let Some(slot) = self.slots.get_mut(slot.0) {
            *slot = (hash >> 32) << 32 | u64::from(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys are their own hashes here, all with the same first slot and half of them with the same upper half.
    #[test]
    fn keys_of_equal_hashes_are_told_apart() {
        let keys: Vec<(u64, &str)> =
            vec![(5, "a"), (5, "b"), (5 | 1 << 40, "c"), (5 | 1 << 40, "d")];
        let mut table = Table::new(keys.len());
        for (place, (hash, key)) in (0..).zip(&keys) {
            let is_key = |at: u32| keys[at as usize].1 == *key;
            let Found::Vacant(slot) = table.find(*hash, is_key) else {
                panic!("{key} is not there yet");
            };
            table.fill(slot, *hash, place);
        }
        for (place, (hash, key)) in (0..).zip(&keys) {
            let is_key = |at: u32| keys[at as usize].1 == *key;
            assert_eq!(table.place(*hash, is_key), Some(place));
            assert_eq!(table.place(hash ^ 1 << 50, is_key), None);
        }
        assert_eq!(table.place(5, |_| false), None);
    }

    #[test]
    fn an_empty_table_finds_nothing() {
        assert_eq!(Table::default().place(7, |_| true), None);
        assert_eq!(Table::new(0).place(7, |_| true), None);
    }
}
