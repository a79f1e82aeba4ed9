//! Products of bytes with AVX-512 VNNI, each digit by itself.
//!
//! An instruction multiplies four unsigned bytes by four signed ones: for scores keys are the unsigned ones, with 128 added, and
//! sums begin at `-128 Σ digits`; for sums of values the weights are.

use std::arch::x86_64::*;

use super::ahead::Ahead;
use super::digits::{DIGITS, QueryBlock, WeightBlock, number};
use super::layout::{self, CHUNK, Layout, add_elements};
use super::rows::{GROUPS, LANES, QUAD, Rows, SHARED, Weights};
use crate::kernel::attention::blocks::BLOCK;

/// Queries and blocks as products want them. A thread keeps it.
#[derive(Default)]
pub(crate) struct Memory {
    /// (group, n_scales).
    query: Vec<QueryBlock>,
    layout: Layout,
    /// (group, n_scales).
    weights: Vec<WeightBlock>,
}

/// Steps of the work, about, in which the weights of a head and of [`SHARED`] elements become digits. Four elements of a head and all
/// keys are one step, or [`CHUNK`] elements and four values.
const DIVIDE: usize = 3;

/// Steps that the scores of a block take, for as many heads of `D` elements; [`Ahead::steps`] is told of them.
pub(super) fn steps_of_scores<const D: usize>(group: usize) -> usize {
    layout::steps_of_keys::<D>() + group * (D / QUAD)
}

/// The same for the sums over its values.
pub(super) fn steps_of_sums<const D: usize>(group: usize) -> usize {
    layout::steps_of_values::<D>() + group * (D / SHARED * DIVIDE + D / CHUNK * LANES)
}

impl Memory {
    /// Takes the queries of a group of heads, (group, `D`); `D` is a multiple of [`CHUNK`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    pub(super) fn prepare<const D: usize>(&mut self, q: &[f32]) {
        let blocks = q.as_chunks().0;
        self.layout.fit(D);
        self.query.resize(blocks.len(), QueryBlock::NONE);
        self.weights.resize(blocks.len(), WeightBlock::NONE);
        for (to, block) in self.query.iter_mut().zip(blocks) {
            *to = QueryBlock::of(block);
        }
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
        let pairs = self.query.chunks(const { 2 * D / SHARED });
        for (query, scores) in pairs.zip(scores.chunks_mut(2 * BLOCK)) {
            match query.len() {
                n if n == D / SHARED => scores_of::<D, 1>(query, &self.layout, ahead, scores),
                _ => scores_of::<D, 2>(query, &self.layout, ahead, scores),
            }
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
        self.layout.set_values::<D>(v, ahead);
        let heads = self.weights.chunks_exact_mut(const { D / SHARED });
        for (digits, weights) in heads.zip(weights.as_chunks().0) {
            for (digits, scales) in digits.iter_mut().zip(&self.layout.value_scales) {
                ahead.steps(DIVIDE);
                digits.set(weights, &scales.of_keys);
            }
        }
        let pairs = self.weights.chunks(const { 2 * D / SHARED });
        let pairs = pairs.zip(factors.chunks(2)).zip(sums.chunks_mut(2 * D));
        for ((weights, factors), sums) in pairs {
            match factors.len() {
                1 => sums_of::<D, 1>(weights, factors, &self.layout, ahead, sums),
                _ => sums_of::<D, 2>(weights, factors, &self.layout, ahead, sums),
            }
        }
    }
}

/// The scores of `H` heads, one or two: keys are loaded once for both, and their sums stay in registers.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
fn scores_of<const D: usize, const H: usize>(
    query: &[QueryBlock],
    layout: &Layout,
    ahead: &mut Ahead,
    to: &mut [f32],
) {
    let n_scales = const { D / SHARED };
    assert!(query.len() == H * n_scales && to.len() == H * BLOCK);
    let keys = layout.keys.as_chunks::<{ SHARED / QUAD }>().0.iter();
    for (at, (keys, scales)) in keys.zip(&layout.key_scales).enumerate() {
        // (head, group, digit).
        let mut sums = [[[_mm512_setzero_si512(); DIGITS]; GROUPS]; H];
        for (h, sums) in sums.iter_mut().enumerate() {
            for sums in sums {
                for (sum, start) in sums.iter_mut().zip(query[h * n_scales + at].starts) {
                    *sum = _mm512_set1_epi32(start);
                }
            }
        }
        for (quad, keys) in keys.iter().enumerate() {
            ahead.steps(H);
            let keys = keys.groups();
            for (h, sums) in sums.iter_mut().enumerate() {
                for (i, digits) in query[h * n_scales + at].digits.iter().enumerate() {
                    let digits = digits.as_chunks::<QUAD>().0[quad].map(i8::cast_unsigned);
                    let digits = _mm512_set1_epi32(i32::from_ne_bytes(digits));
                    for (sums, keys) in sums.iter_mut().zip(keys) {
                        sums[i] = _mm512_dpbusd_epi32(sums[i], keys, digits);
                    }
                }
            }
        }
        for (h, sums) in sums.iter().enumerate() {
            let scale = _mm512_set1_ps(query[h * n_scales + at].scale);
            for (group, sums) in sums.iter().enumerate() {
                // SAFETY: `reach`: there are scales of all groups, and scores of all groups and heads.
                unsafe {
                    let scales = _mm512_loadu_ps(scales.as_ptr().add(group * LANES));
                    let to = to.as_mut_ptr().add(h * BLOCK + group * LANES);
                    let before = match at {
                        0 => _mm512_setzero_ps(),
                        _ => _mm512_loadu_ps(to),
                    };
                    let scales = _mm512_mul_ps(scales, scale);
                    _mm512_storeu_ps(to, _mm512_fmadd_ps(number(sums), scales, before));
                }
            }
        }
    }
}

/// Adds the weighted values of a block to `factors` times the sums of `H` heads, one or two: values are loaded once for both.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
fn sums_of<const D: usize, const H: usize>(
    weights: &[WeightBlock],
    factors: &[f32],
    layout: &Layout,
    ahead: &mut Ahead,
    to: &mut [f32],
) {
    let n_scales = const { D / SHARED };
    assert!(weights.len() == H * n_scales && factors.len() == H && to.len() == H * D);
    let chunks = layout.values.as_chunks::<LANES>().0.iter();
    let chunks = chunks.zip(layout.value_scales.as_chunks::<2>().0);
    for (chunk, (values, scales)) in chunks.enumerate() {
        // (head, scale, vector, digit).
        let mut sums = [[[[_mm512_setzero_si512(); DIGITS]; 2]; 2]; H];
        for (quad, values) in values.iter().enumerate() {
            ahead.steps(H);
            for (half, values) in values.halves().iter().enumerate() {
                for (h, sums) in sums.iter_mut().enumerate() {
                    let digits = &weights[h * n_scales + 2 * chunk + half].0;
                    for (i, digits) in digits.iter().enumerate() {
                        let digits = _mm512_set1_epi32(i32::from_ne_bytes(digits[quad]));
                        for (sums, values) in sums[half].iter_mut().zip(values) {
                            sums[i] = _mm512_dpbusd_epi32(sums[i], digits, *values);
                        }
                    }
                }
            }
        }
        for (h, sums) in sums.iter().enumerate() {
            let to = &mut to[h * D..][..D].as_chunks_mut().0[chunk];
            add_elements(sums, scales, factors[h], to);
        }
    }
}
