//! Products of bytes with AVX-512 VNNI, each digit by itself.
//!
//! An instruction multiplies four unsigned bytes by four signed ones: for scores keys are the unsigned ones, with 128 added, and
//! sums begin at `-128 Σ digits`; for sums of values the weights are.

use std::arch::x86_64::*;

use super::ahead::Ahead;
use super::digits::{DIGITS, QueryBlock, WeightBlock, groups, number};
use super::layout::{CHUNK, INTERLEAVE, Layout, TURN, ValueQuads, WIDEN, add_elements};
use super::rows::{GROUPS, LANES, QUAD, Rows, SHARED, Weights};
use crate::kernel::attention::blocks::BLOCK;

/// Cycles, about, of what is done for four elements of a head and all keys, for four values and [`CHUNK`] elements of a head ...
const SCORE: usize = 7;
const ADD: usize = 8;
/// ... and for the weights of a head and [`SHARED`] elements.
const WEIGH: usize = 13;

/// Queries and blocks as products want them. A thread keeps it.
#[derive(Default)]
pub(crate) struct Memory {
    /// (group, n_scales).
    query: Vec<QueryBlock>,
    layout: Layout,
    /// (group, n_scales).
    weights: Vec<WeightBlock>,
}

/// Cycles that a block takes, about, for as many heads of `D` elements; [`Ahead::spend`] is told of them.
pub(super) fn cycles<const D: usize>(group: usize) -> usize {
    let of_a_chunk = GROUPS * TURN + LANES * INTERLEAVE;
    let of_a_head = D / QUAD * (SCORE + ADD) + D / SHARED * WEIGH;
    D / CHUNK * of_a_chunk + 2 * WIDEN + group * of_a_head
}

impl Memory {
    /// Takes the queries of a group of heads, (group, `D`); `D` is a multiple of [`CHUNK`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    pub(super) fn prepare<const D: usize>(&mut self, q: &[f32]) {
        self.layout.fit(D);
        self.query.clear();
        self.query
            .extend(q.as_chunks().0.iter().map(QueryBlock::of));
        self.weights.resize(self.query.len(), WeightBlock::NONE);
    }

    /// `scores[g][key] = q[g] · k[key]`; those behind the last key mean nothing.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    pub(super) fn scores<const D: usize>(
        &mut self,
        k: &Rows,
        ahead: &mut Ahead,
        scores: &mut [f32],
    ) {
        self.layout.set_keys::<D>(k, ahead);
        let heads = self.query.chunks_exact(const { D / SHARED });
        for (query, scores) in heads.zip(scores.as_chunks_mut().0) {
            scores_of(query, &self.layout, ahead, scores);
        }
    }

    /// `sums[g] = factors[g] * sums[g] + Σ weights[g][key] * v[key]`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    pub(super) fn sum<const D: usize>(
        &mut self,
        v: &Rows,
        Weights { weights, factors }: Weights,
        ahead: &mut Ahead,
        sums: &mut [f32],
    ) {
        let n_scales = const { D / SHARED };
        self.layout.set_values::<D>(v, ahead);
        let scales = &self.layout.value_scales;
        let heads = self.weights.chunks_exact_mut(n_scales);
        for (digits, weights) in heads.zip(weights.as_chunks().0) {
            for (digits, scales) in digits.iter_mut().zip(scales) {
                ahead.spend(WEIGH);
                digits.set(weights, &scales.of_keys);
            }
        }
        let heads = self.weights.chunks_exact(n_scales).zip(factors);
        for ((weights, &factor), sums) in heads.zip(sums.chunks_exact_mut(D)) {
            let chunks = self.layout.values.as_chunks().0.iter();
            let weights = weights.as_chunks().0.iter();
            let scales = scales.as_chunks().0.iter();
            let sums = sums.as_chunks_mut().0.iter_mut();
            for (((values, weights), scales), sums) in chunks.zip(weights).zip(scales).zip(sums) {
                let added = weighted(values, weights, ahead);
                add_elements(added, scales, factor, sums);
            }
        }
    }
}

/// The scores of one head.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
fn scores_of(query: &[QueryBlock], layout: &Layout, ahead: &mut Ahead, to: &mut [f32; BLOCK]) {
    let keys = layout.keys.as_chunks::<{ SHARED / QUAD }>().0.iter();
    let mut scores = [_mm512_setzero_ps(); GROUPS];
    for ((query, keys), scales) in query.iter().zip(keys).zip(&layout.key_scales) {
        let starts = query.starts.map(|start| _mm512_set1_epi32(start));
        let mut sums = [starts; GROUPS];
        for (at, keys) in keys.iter().enumerate() {
            ahead.spend(SCORE);
            let digits: [__m512i; DIGITS] = std::array::from_fn(|i| {
                let quad = query.digits[i].as_chunks::<QUAD>().0[at];
                _mm512_set1_epi32(i32::from_ne_bytes(quad.map(i8::cast_unsigned)))
            });
            for (group, sums) in sums.iter_mut().enumerate() {
                // SAFETY: the 16 keys are in the block.
                let keys = unsafe { _mm512_loadu_si512(keys.0.as_ptr().add(group * LANES).cast()) };
                for (sum, digit) in sums.iter_mut().zip(digits) {
                    *sum = _mm512_dpbusd_epi32(*sum, keys, digit);
                }
            }
        }
        let scale = _mm512_set1_ps(query.scale);
        for ((score, sums), scales) in scores.iter_mut().zip(sums).zip(groups(scales)) {
            *score = _mm512_fmadd_ps(number(sums), _mm512_mul_ps(scales, scale), *score);
        }
    }
    for (group, score) in scores.into_iter().enumerate() {
        // SAFETY: the 16 keys are in the block.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr().add(group * LANES), score) };
    }
}

/// The weighted values of a block: [`CHUNK`] elements of a head.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
fn weighted(
    values: &[ValueQuads; LANES],
    weights: &[WeightBlock; 2],
    ahead: &mut Ahead,
) -> [[__m512; 2]; 2] {
    let zero = _mm512_setzero_si512();
    // (scale, vector, digit).
    let mut sums = [[[zero; DIGITS]; 2]; 2];
    for (quad, values) in values.iter().enumerate() {
        ahead.spend(ADD);
        for (half, (weights, sums)) in weights.iter().zip(&mut sums).enumerate() {
            let digits = (weights.0.each_ref())
                .map(|digits| _mm512_set1_epi32(i32::from_ne_bytes(digits[quad])));
            for (i, sums) in sums.iter_mut().enumerate() {
                // SAFETY: four vectors are as many bytes as there are.
                let values = unsafe {
                    _mm512_loadu_si512(values.0.as_ptr().add((2 * half + i) * LANES).cast())
                };
                for (sum, digit) in sums.iter_mut().zip(digits) {
                    *sum = _mm512_dpbusd_epi32(*sum, digit, values);
                }
            }
        }
    }
    sums.map(|vectors| vectors.map(|digits| number(digits)))
}
