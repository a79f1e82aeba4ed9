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
//! [`vectors`] does this with AVX-512. What it gives for a block depends on the block alone, not on the pages that it lies in.

mod ahead;
mod digits;
mod layout;
mod rows;
mod vectors;

use std::ops::Range;

use self::ahead::Ahead;
use self::rows::{LANES, Rows, SHARED, Weights};
use self::vectors::Memory;
use super::block::{Block, largest, weights_of};
use super::keys::{Keys, Way};
use super::scratch::Scratch;
use super::state::State;
use crate::kernel::attention::blocks::{BLOCK, blocks};
use crate::kernel::attention::problem::Problem;
use crate::simd::{Lanes, exp};

/// The exponential of this is hardly more than the smallest float that is normal.
const SMALLEST_EXPONENT: f32 = -87.0;

/// Steps of the work, about, in which the largest score of a head is found, and in which scores become weights.
const COMPARE: usize = 6;
const WEIGH: usize = 12;
/// Heads that this is done for at once, fewer than a vector has room for.
const HEADS: usize = 8;

/// Attention with bytes, of heads of `D` elements.
pub(crate) struct Bytes<const D: usize>;

/// Bytes of a block: its numbers, then its scales.
const fn block_bytes(head_dim: usize) -> [usize; 2] {
    [BLOCK * head_dim, BLOCK * 2 * (head_dim / SHARED)]
}

impl<const D: usize> Way for Bytes<D> {
    const LANES: Option<usize> = Some(LANES);
    type Kept = Memory;

    #[inline(always)]
    fn prepare<L: Lanes>(
        keys: &Keys,
        problem: &Problem,
        scratch: &mut Scratch,
        memory: &mut Memory,
    ) {
        assert!(L::N == LANES, "bytes are multiplied with AVX-512");
        keys.queries::<L>(problem, scratch.q);
        // SAFETY: `level`: only vectors of AVX-512 have so many lanes.
        unsafe { memory.prepare::<D>(scratch.q) };
    }

    #[inline(always)]
    fn attend<L: Lanes>(
        keys: &Keys,
        problem: &Problem,
        state: &mut State,
        Scratch {
            scores,
            factors,
            copy,
            ..
        }: &mut Scratch,
        memory: &mut Memory,
    ) {
        assert!(L::N == LANES, "bytes are multiplied with AVX-512");
        let (group, head_dim) = (problem.group, D);
        let n_bytes = block_bytes(head_dim).iter().sum();
        let steps_of_scores = vectors::steps_of_scores::<D>(group) + group * COMPARE;
        let steps_of_sums = group * WEIGH + vectors::steps_of_sums::<D>(group);
        for in_block in blocks(keys.keys.clone()) {
            let n = in_block.len();
            let block = Block { n, group, head_dim };
            let at = keys.bytes_at(problem, &in_block);
            let next = keys.next_at(problem, &in_block);
            let next_k = problem.k.as_ptr().wrapping_add(next);
            let next_v = problem.v.as_ptr().wrapping_add(next);
            let mut keys_ahead = Ahead::new(next_k, n_bytes, steps_of_scores);
            let mut values_ahead = Ahead::new(next_v, n_bytes, steps_of_sums);
            let k = keys.bytes::<D>(problem, problem.k, &in_block, at, copy);
            // SAFETY: `level`: only vectors of AVX-512 have so many lanes.
            unsafe { memory.scores::<D>(&k, &mut keys_ahead, scores) };
            problem.cap::<L>(scores);
            block.hide_rest(scores);
            weigh::<L>(scores, state, factors, [&mut keys_ahead, &mut values_ahead]);
            let v = keys.bytes::<D>(problem, problem.v, &in_block, at, copy);
            let (weights, factors) = (&*scores, &*factors);
            let weights = Weights { weights, factors };
            // SAFETY: `level`: as above.
            unsafe { memory.sum::<D>(&v, weights, &mut values_ahead, state.sums) };
        }
    }
}

impl Keys {
    /// Where the numbers and the scales of a block lie in a pool, if they lie there one after the other and a page has room
    /// for a whole block behind the first.
    fn bytes_at(&self, problem: &Problem, block: &Range<usize>) -> Option<[usize; 2]> {
        let is_in_page =
            block.start.is_multiple_of(BLOCK) && 1 << problem.pages.page_shift >= BLOCK;
        if !is_in_page || self.are_scattered(block) {
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
    fn bytes<'p, const D: usize>(
        &self,
        problem: &Problem,
        pool: &'p [u8],
        block: &Range<usize>,
        at: Option<[usize; 2]>,
        copy: &'p mut [u8],
    ) -> Rows<'p> {
        let n = block.len();
        let [n_numbers, n_scales] = block_bytes(D);
        if let Some([numbers, scales]) = at {
            return Rows {
                n,
                bytes: &pool[numbers..][..n_numbers],
                scales: &pool[scales..][..n_scales],
            };
        }
        let (numbers, scales) = copy.split_at_mut(n_numbers);
        let sizes = [D, n_scales / BLOCK];
        self.gather(problem, pool, block, sizes, [numbers, scales]);
        Rows {
            n,
            bytes: numbers,
            scales: &scales[..n_scales],
        }
    }
}

/// Turns the scores of a block into weights, and says by what sums shrink for that. Whether there is a new largest score nobody can
/// predict: there is no branch on it. All heads take each turn together, so that none waits for what another one has just found.
#[inline(always)]
fn weigh<L: Lanes>(
    scores: &mut [f32],
    state: &mut State,
    factors: &mut [f32],
    [keys_ahead, values_ahead]: [&mut Ahead; 2],
) {
    let peaks = state.peaks.chunks_mut(HEADS);
    let totals = state.weights.chunks_mut(HEADS);
    let heads = scores
        .chunks_mut(HEADS * BLOCK)
        .zip(factors.chunks_mut(HEADS));
    for (((scores, factors), peaks), totals) in heads.zip(peaks).zip(totals) {
        let (scores, n) = (scores.as_chunks_mut::<BLOCK>().0, peaks.len());
        let mut sums = [0.0; HEADS];
        // SAFETY: `reach`: there are `n` heads, fewer than a vector has lanes.
        unsafe {
            for ((peak, before), scores) in peaks.iter_mut().zip(&mut *factors).zip(&*scores) {
                keys_ahead.steps(COMPARE);
                *before = *peak;
                *peak = largest::<L>(*peak, scores);
            }
            for ((sum, peak), scores) in sums.iter_mut().zip(&*peaks).zip(scores) {
                values_ahead.steps(WEIGH);
                *sum = weights_of::<L>(scores, *peak);
            }
            let change = L::load_part(factors.as_ptr(), n).sub(L::load_part(peaks.as_ptr(), n));
            // What is not normal takes a processor long, and the first block of every run would have it.
            let factor = exp(change.max(L::splat(SMALLEST_EXPONENT)));
            factor.store_part(factors.as_mut_ptr(), n);
            let total = L::load_part(totals.as_ptr(), n);
            let total = factor.fma(total, L::load_part(sums.as_ptr(), n));
            total.store_part(totals.as_mut_ptr(), n);
        }
    }
}
