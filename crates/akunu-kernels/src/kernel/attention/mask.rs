//! Which keys a query sees.
//!
//! Query q has position `kv_seq_len - seq_len + q`. It sees keys up to its own position (all when not
//! causal); of those only the last `window` (causal attention only); only the last `n_slots`, which are
//! still in the cache; and of the `seq_len` newest, the drafts of a speculation, only those in its tree
//! mask: bit i for draft i, at most 16.

use std::ops::Range;

use akunu_types::params::AttentionParams;

use super::n_slots;
use crate::constant::Constant;
use crate::table::Args;

/// Most drafts that a tree mask can name.
pub const MAX_DRAFTS: u32 = 16;

/// The mask of one attention.
#[derive(Clone, Copy, Debug)]
pub struct Mask<'a> {
    n_queries: i64,
    n_keys: i64,
    n_slots: i64,
    is_causal: bool,
    window: Option<i64>,
    tree: Option<&'a [u16]>,
}

impl<'a> Mask<'a> {
    /// The mask that params and constants describe. `tree` is looked at where the constant says so.
    pub fn new(args: &Args, tree: &'a [u16]) -> Mask<'a> {
        let p: AttentionParams = args.params();
        let window = args.constants.u32(Constant::Window);
        Mask {
            n_queries: p.seq_len.into(),
            n_keys: p.kv_seq_len.into(),
            n_slots: n_slots(args, &p).into(),
            is_causal: !args.constants.bool(Constant::NonCausal),
            window: window.filter(|&keys| keys > 0).map(i64::from),
            tree: args.constants.bool(Constant::TreeMask).then_some(tree),
        }
    }

    /// Whether a query sees a key.
    pub fn visible(&self, query: usize, key: usize) -> bool {
        let key = key as i64;
        self.range(query as i64).contains(&key) && self.in_tree(query, key)
    }

    /// The keys that each query sees, whatever the tree mask.
    pub fn ranges(&self) -> impl Iterator<Item = Range<i64>> {
        (0..self.n_queries).map(|query| self.range(query))
    }

    /// The keys that one query sees, whatever the tree mask.
    pub fn keys(&self, query: usize) -> Range<usize> {
        let seen = self.range(query as i64);
        let end = seen.end.max(0);
        seen.start.clamp(0, end) as usize..end as usize
    }

    /// Whether a tree mask hides some of them.
    pub fn has_tree(&self) -> bool {
        self.tree.is_some()
    }

    fn range(&self, query: i64) -> Range<i64> {
        let in_cache = (self.n_keys - self.n_slots).max(0)..self.n_keys;
        if !self.is_causal {
            return in_cache;
        }
        let position = self.n_keys - self.n_queries + query;
        let in_window = self.window.map_or(0, |window| position - window + 1);
        in_cache.start.max(in_window)..in_cache.end.min(position + 1)
    }

    fn in_tree(&self, query: usize, key: i64) -> bool {
        let draft = key - (self.n_keys - self.n_queries).max(0);
        match self.tree {
            Some(tree) if draft >= 0 => {
                draft < i64::from(MAX_DRAFTS) && tree[query] >> draft & 1 == 1
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constant::Constants;

    fn seen(p: AttentionParams, constants: Constants, tree: &[u16], query: usize) -> Vec<usize> {
        let bytes = bytemuck::bytes_of(&p);
        let args = Args {
            dtype: None,
            params: bytes,
            constants: &constants,
        };
        let mask = Mask::new(&args, tree);
        (0..p.kv_seq_len as usize)
            .filter(|&key| mask.visible(query, key))
            .collect()
    }

    fn shape(seq_len: u32, kv_seq_len: u32) -> AttentionParams {
        AttentionParams {
            seq_len,
            kv_seq_len,
            head_dim: 8,
            ..Default::default()
        }
    }

    #[test]
    fn causal_with_an_offset() {
        let none = Constants::none();
        assert_eq!(seen(shape(2, 5), none.clone(), &[], 0), [0, 1, 2, 3]);
        assert_eq!(seen(shape(2, 5), none.clone(), &[], 1), [0, 1, 2, 3, 4]);
        assert_eq!(seen(shape(3, 2), none, &[], 0), []);
    }

    #[test]
    fn a_window_counts_the_query_itself() {
        let window = Constants::none().with_u32(Constant::Window, 2);
        assert_eq!(seen(shape(2, 5), window.clone(), &[], 0), [2, 3]);
        assert_eq!(seen(shape(2, 5), window, &[], 1), [3, 4]);
    }

    #[test]
    fn a_ring_has_forgotten_all_but_its_slots() {
        let ring = AttentionParams {
            kv_stride: 3 * 8,
            ..shape(1, 5)
        };
        assert_eq!(seen(ring, Constants::none(), &[], 0), [2, 3, 4]);
    }

    #[test]
    fn drafts_see_the_prompt_and_their_ancestors() {
        let tree = Constants::none().with_bool(Constant::TreeMask, true);
        // Drafts 1 and 2 are both children of draft 0.
        let masks = [0b001, 0b011, 0b101];
        assert_eq!(seen(shape(3, 5), tree.clone(), &masks, 1), [0, 1, 2, 3]);
        assert_eq!(seen(shape(3, 5), tree, &masks, 2), [0, 1, 2, 4]);
    }

    #[test]
    fn everything_is_seen_when_not_causal() {
        let all = Constants::none().with_bool(Constant::NonCausal, true);
        assert_eq!(seen(shape(7, 3), all, &[], 0), [0, 1, 2]);
    }
}
