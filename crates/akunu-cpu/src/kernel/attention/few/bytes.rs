//! Attention of single rows with keys and values in 8 bits.
//!
//! A number is `scale * byte`, and 32 elements of a head share a scale. Widening bytes costs more instructions than multiplying
//! them, so a block of keys is laid out once for all heads that share it, in the order that products want:
//!
//! ```text
//! score[g][key] = Σ_block scale[block][key] * Σ_d q[g][d] * k[d][key]     lanes are keys: there is no sum over lanes
//! sum[g][d]    += Σ_key   (weight[g][key] * scale[block][key]) * v[key][d]    the scales become part of the weights
//! ```
//!
//! [`Products`] says how each level of instructions does this. What it gives for a block depends on the block alone, not on
//! the pages that it lies in.

mod ahead;
pub(super) mod digits;

use std::marker::PhantomData;
use std::ops::Range;

use akunu_types::kv_format::Q8_BLOCK;

use self::ahead::Ahead;
use super::block::Block;
use super::keys::{Keys, Way};
use super::scratch::Scratch;
use super::state::State;
use crate::kernel::attention::blocks::{BLOCK, blocks};
use crate::kernel::attention::problem::Problem;
use crate::kernel::stored::widen_halves;
use crate::simd::Lanes;

/// Elements that share a scale.
const SHARED: usize = Q8_BLOCK as usize;

/// Cycles in which the scores of a head become weights, about.
const WEIGHING: usize = 60;

/// The keys of a block, or the values, as (n, head_dim) bytes.
pub(crate) struct Rows<'a> {
    /// How many, at least one. There is memory for [`BLOCK`].
    n: usize,
    bytes: &'a [u8],
    /// (scales of a head, [`BLOCK`]), 0 behind the last.
    scales: &'a [f32],
}

/// Products with bytes of heads of [`Products::HEAD_DIM`] elements.
pub(crate) trait Products {
    const HEAD_DIM: usize;

    /// Memory that blocks are laid out in. A thread keeps it.
    type Memory: Default + Send + 'static;

    /// Cycles that a block takes, about, for as many heads; [`Ahead::spend`] is told of them.
    fn cycles(group: usize) -> usize;

    /// Makes of the queries of a group, (group, head_dim), what products want of them.
    ///
    /// # Safety
    /// The CPU has the instructions, as for all functions here.
    unsafe fn prepare(q: &[f32], memory: &mut Self::Memory);

    /// `scores[g][key] = q[g] · k[key]`; those behind the last key mean nothing.
    ///
    /// # Safety
    /// That of [`Products::prepare`].
    unsafe fn scores(k: &Rows, memory: &mut Self::Memory, ahead: &mut Ahead, scores: &mut [f32]);

    /// `sums[g] += Σ weights[g][key] * v[key]`; weights behind the last key are 0.
    ///
    /// # Safety
    /// That of [`Products::prepare`].
    unsafe fn sum(
        v: &Rows,
        weights: &[f32],
        memory: &mut Self::Memory,
        ahead: &mut Ahead,
        sums: &mut [f32],
    );
}

/// Attention with bytes that are multiplied by `P`.
pub(crate) struct Bytes<P>(PhantomData<P>);

/// Bytes of a block: its numbers, then its scales.
const fn block_bytes(head_dim: usize) -> [usize; 2] {
    [BLOCK * head_dim, BLOCK * 2 * (head_dim / SHARED)]
}

impl<P: Products> Way for Bytes<P> {
    type Kept = P::Memory;

    #[inline(always)]
    unsafe fn prepare<L: Lanes>(
        keys: &Keys,
        problem: &Problem,
        scratch: &mut Scratch,
        memory: &mut P::Memory,
    ) {
        // SAFETY: by the caller's promise.
        unsafe {
            keys.queries::<L>(problem, scratch.q);
            P::prepare(scratch.q, memory);
        }
    }

    #[inline(always)]
    unsafe fn attend<L: Lanes>(
        keys: &Keys,
        problem: &Problem,
        state: &mut State,
        Scratch {
            scores,
            scales,
            copy,
            ..
        }: &mut Scratch,
        memory: &mut P::Memory,
    ) {
        let (group, head_dim) = (problem.group, P::HEAD_DIM);
        // With a length that the compiler knows, a block takes 5 % less time.
        let scales = &mut scales[..BLOCK * (P::HEAD_DIM / SHARED)];
        for in_block in blocks(keys.keys.clone()) {
            let n = in_block.len();
            let block = Block { n, group, head_dim };
            let at = keys.bytes_at(problem, &in_block);
            let next = keys.next_at(problem, &in_block);
            let pools = [problem.k, problem.v].map(|pool| pool.as_ptr().wrapping_add(next));
            let n_bytes = block_bytes(head_dim).iter().sum();
            let cycles = P::cycles(group) + group * WEIGHING;
            let mut ahead = Ahead::new(pools, n_bytes, cycles);
            // SAFETY: by the caller's promise.
            unsafe {
                let pool = problem.k;
                let (bytes, halves) = keys.bytes::<P>(problem, pool, &in_block, at, copy);
                widen_scales::<L, P>(halves, n, scales);
                let k = Rows { n, bytes, scales };
                P::scores(&k, memory, &mut ahead, scores);
                ahead.spend(group * WEIGHING);
                problem.cap::<L>(scores);
                block.hide_rest(scores);
                block.weigh::<L>(state, scores);
                let pool = problem.v;
                let (bytes, halves) = keys.bytes::<P>(problem, pool, &in_block, at, copy);
                widen_scales::<L, P>(halves, n, scales);
                let v = Rows { n, bytes, scales };
                P::sum(&v, scores, memory, &mut ahead, state.sums);
            }
        }
    }
}

impl Keys {
    /// Where the numbers and the scales of a block lie in a pool, if they lie there one after the other and a page has room
    /// for a whole block behind the first.
    fn bytes_at(&self, problem: &Problem, block: &Range<usize>) -> Option<[usize; 2]> {
        let is_in_page =
            block.start.is_multiple_of(BLOCK) && 1 << problem.pages.page_shift >= BLOCK;
        if !is_in_page || self.are_scattered(problem, block) {
            return None;
        }
        let sequence = problem.rows[self.row].sequence;
        let at = problem.key_at(sequence, self.kv_head, block.start);
        Some([at.numbers, at.scales])
    }

    /// Where the numbers of the next block begin; those of this one if there is none.
    fn next_at(&self, problem: &Problem, block: &Range<usize>) -> usize {
        let first = match block.end < self.end {
            true => block.end,
            false => block.start,
        };
        let sequence = problem.rows[self.row].sequence;
        problem.key_at(sequence, self.kv_head, first).numbers
    }

    /// The numbers and the scales of a block, in their pool or in a copy.
    #[inline(always)]
    fn bytes<'p, P: Products>(
        &self,
        problem: &Problem,
        pool: &'p [u8],
        block: &Range<usize>,
        at: Option<[usize; 2]>,
        copy: &'p mut [u8],
    ) -> (&'p [u8], &'p [u8]) {
        let [n_numbers, n_scales] = block_bytes(P::HEAD_DIM);
        if let Some([numbers, scales]) = at {
            return (&pool[numbers..][..n_numbers], &pool[scales..][..n_scales]);
        }
        let (numbers, scales) = copy.split_at_mut(n_numbers);
        let sizes = [P::HEAD_DIM, n_scales / BLOCK];
        self.gather(problem, pool, block, sizes, [numbers, scales]);
        (numbers, &scales[..n_scales])
    }
}

/// The scales of a block of `n` rows as floats, from (rows, scales of a head) halves to (scales of a head, [`BLOCK`]).
///
/// # Safety
/// The CPU has the instructions.
#[inline(always)]
unsafe fn widen_scales<L: Lanes, P: Products>(halves: &[u8], n: usize, to: &mut [f32]) {
    let n_scales = const { P::HEAD_DIM / SHARED };
    let halves = &halves.as_chunks::<2>().0[..BLOCK * n_scales];
    for (at, to) in to.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
        let mut turned = [[0; 2]; BLOCK];
        for (key, turned) in turned.iter_mut().enumerate() {
            *turned = halves[key * n_scales + at];
        }
        // SAFETY: by the caller's promise.
        unsafe { widen_halves::<L>(turned.as_flattened(), to) };
        to[n..].fill(0.0);
    }
}
