//! Attention of single rows with keys and values that become floats in registers.

use std::marker::PhantomData;
use std::ops::Range;

use akunu_kernels::kernel::pages::SlotAt;

use super::block::{Block, Stretch, keys_ahead};
use super::keys::{Keys, Way};
use super::scratch::Scratch;
use super::state::State;
use crate::kernel::attention::blocks::{BLOCK, blocks};
use crate::kernel::attention::problem::Problem;
use crate::kernel::stored::Stored;
use crate::simd::Lanes;

/// Most stretches of a block: pages have 32 keys and more.
const MAX_STRETCHES: usize = 2 * BLOCK / 32;

/// Numbers that are stored as `S`.
pub(crate) struct Floats<S>(PhantomData<S>);

impl<S: Stored + 'static> Way for Floats<S> {
    type Kept = ();

    #[inline(always)]
    fn prepare<L: Lanes>(keys: &Keys, problem: &Problem, scratch: &mut Scratch, (): &mut ()) {
        keys.queries::<L>(problem, scratch.q);
    }

    #[inline(always)]
    fn attend<L: Lanes>(
        keys: &Keys,
        problem: &Problem,
        state: &mut State,
        Scratch {
            q,
            scores,
            scales,
            copy,
            ..
        }: &mut Scratch,
        (): &mut (),
    ) {
        let (group, head_dim) = (problem.group, problem.head_dim);
        for in_block in blocks(keys.keys.clone()) {
            let block = Block {
                n: in_block.len(),
                group,
                head_dim,
            };
            let (stretches, n) = keys.stretches::<S>(problem, &in_block);
            let pool = keys.pool::<S>(problem, problem.k, &in_block, copy);
            for stretch in &stretches[..n] {
                let k = stretch.of::<L, S>(pool, head_dim, scales);
                let scores = &mut scores[stretch.key..];
                block.part(stretch).scores::<L, S>(q, k, scores);
            }
            problem.cap::<L>(scores);
            block.hide_rest(scores);
            block.weigh::<L>(state, scores);
            let pool = keys.pool::<S>(problem, problem.v, &in_block, copy);
            for stretch in &stretches[..n] {
                let v = stretch.of::<L, S>(pool, head_dim, scales);
                let weights = &scores[stretch.key..];
                block.part(stretch).sum::<L, S>(weights, v, state.sums);
            }
        }
    }
}

impl Keys {
    /// The memory that the stretches of a block lie in: the pool, or, for keys that are scattered, room for a block in
    /// which they are put one after the other, and their scales behind them.
    fn pool<'p, S: Stored>(
        &self,
        problem: &Problem,
        pool: &'p [u8],
        block: &Range<usize>,
        room: &'p mut [u8],
    ) -> &'p [u8] {
        if !self.are_scattered(block) {
            return pool;
        }
        let row = problem.head_dim * S::BYTES;
        let sizes = [row, 2 * S::n_scales(problem.head_dim)];
        let (numbers, scales) = room.split_at_mut(block.len() * row);
        self.gather(problem, pool, block, sizes, [numbers, scales]);
        room
    }

    /// Cuts a block where a page ends, and where what is to be fetched begins to lie in the next page: at most twice in
    /// each 32 keys. The number of stretches comes with them. Keys that are scattered are one stretch in a memory of their
    /// own.
    #[inline(always)]
    fn stretches<S: Stored>(
        &self,
        problem: &Problem,
        block: &Range<usize>,
    ) -> ([Stretch; MAX_STRETCHES], usize) {
        let (shift, row) = (problem.pages.page_shift, problem.head_dim * S::BYTES);
        let sequence = problem.rows[self.row].sequence;
        let (mut stretches, mut n) = ([Stretch::EMPTY; MAX_STRETCHES], 0);
        if self.are_scattered(block) {
            stretches[0] = Stretch {
                n: block.len(),
                at: SlotAt {
                    numbers: 0,
                    scales: block.len() * row,
                },
                ..Stretch::EMPTY
            };
            return (stretches, 1);
        }
        let n_ahead = keys_ahead(row);
        let mut first = block.start;
        while first < block.end {
            let at = problem.key_at(sequence, self.kv_head, first);
            let page_end = ((first >> shift) + 1) << shift;
            let cut = page_end.saturating_sub(n_ahead);
            let (end, ahead) = if first < cut {
                (cut, (n_ahead * row) as isize)
            } else if page_end < self.end {
                let next = problem.key_at(sequence, self.kv_head, page_end);
                let ahead = next.numbers + (first + n_ahead - page_end) * row;
                (page_end, ahead as isize - at.numbers as isize)
            } else {
                (page_end, 0)
            };
            let end = end.min(block.end);
            stretches[n] = Stretch {
                key: first - block.start,
                n: end - first,
                at,
                ahead,
            };
            (first, n) = (end, n + 1);
        }
        (stretches, n)
    }
}
