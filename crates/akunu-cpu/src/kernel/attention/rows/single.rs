//! Attention of single rows: all scores of a head, their weights, and the sum of the values.

use std::ops::Range;

use super::Job;
use crate::number::Number;
use crate::part::Scratch;
use crate::simd::{Lanes, exp};

/// Keys of a block: some heads of them fit the second cache.
const BLOCK: usize = 32;
/// Keys whose scores are made at once.
const KEYS: usize = 4;
/// Vectors of a head that are summed at once.
const SUMS: usize = 4;

/// Rows of a matrix: `n` of them, `stride` apart.
#[derive(Clone, Copy)]
struct RowsOf<'a, T> {
    numbers: &'a [T],
    stride: usize,
    n: usize,
}

impl<T: Number> Job<'_, T> {
    /// Each query by itself. The keys go by in blocks, each with all heads of the job, so that memory is read in long runs.
    ///
    /// # Safety
    /// `own`: the rows of the output belong to this part.
    #[inline(always)]
    pub(super) unsafe fn run_singly<L: Lanes>(&self, scratch: &mut Scratch) {
        let problem = self.problem;
        let heads = self.kv_heads.start * problem.group..self.kv_heads.end * problem.group;
        for query in self.first..self.first + self.n_queries {
            let seen = problem.seen(query);
            let n = seen.len();
            let scores = scratch.take::<f32>(n * heads.len());
            let scores_of = |head: usize| (head - heads.start) * n;
            for block in (0..n).step_by(BLOCK) {
                let block = block..n.min(block + BLOCK);
                let keys = seen.start + block.start..seen.start + block.end;
                for head in heads.clone() {
                    let q = &problem.q[problem.query_at(query, head)..][..problem.head_dim];
                    let scores = &mut scores[scores_of(head)..][block.clone()];
                    score::<L, T>(q, self.rows_of(problem.k, head, &keys), scores);
                }
            }
            for head in heads.clone() {
                let weights = &mut scores[scores_of(head)..][..n];
                let mut scale = problem.params.scale;
                if problem.bias.is_some() {
                    for (weight, key) in weights.iter_mut().zip(seen.clone()) {
                        *weight = *weight * scale + problem.bias(query, head, key);
                    }
                    scale = 1.0;
                }
                // SAFETY: the output is this part's.
                unsafe {
                    weigh::<L>(weights, scale);
                    problem.output(query, head).fill(0.0);
                }
            }
            for block in (0..n).step_by(BLOCK) {
                let block = block..n.min(block + BLOCK);
                let keys = seen.start + block.start..seen.start + block.end;
                for head in heads.clone() {
                    let weights = &scores[scores_of(head)..][block.clone()];
                    // SAFETY: as above; there are as many values.
                    unsafe {
                        let values = self.rows_of(problem.v, head, &keys);
                        add_values::<L, T>(weights, values, problem.output(query, head));
                    }
                }
            }
        }
    }

    /// The rows of a block of keys, or of their values, for a head.
    fn rows_of<'a>(&self, numbers: &'a [T], head: usize, keys: &Range<usize>) -> RowsOf<'a, T> {
        let problem = self.problem;
        let first = keys.start * problem.stride;
        RowsOf {
            numbers: &numbers[first + head / problem.group * problem.head_dim..],
            stride: problem.stride,
            n: keys.len(),
        }
    }
}

/// `scores[i] = q · k[i]`.
#[inline(always)]
fn score<L: Lanes, T: Number>(q: &[f32], keys: RowsOf<T>, scores: &mut [f32]) {
    let (whole, rest) = (q.len() / L::N * L::N, q.len() % L::N);
    assert!(keys.numbers.len() >= (keys.n - 1) * keys.stride + q.len() && scores.len() == keys.n);
    for (at, scores) in scores.chunks_mut(KEYS).enumerate() {
        // Behind the last key stands the last one again.
        let key = |i: usize| (at * KEYS + i).min(keys.n - 1) * keys.stride;
        // SAFETY: `reach`: every row has as many numbers as q.
        unsafe {
            let k: [*const T; KEYS] =
                std::array::from_fn(|i| keys.numbers.as_ptr().wrapping_add(key(i)));
            let mut sums = [L::splat(0.0); KEYS];
            for d in (0..whole).step_by(L::N) {
                let q = L::load(q.as_ptr().add(d));
                for (sum, k) in sums.iter_mut().zip(k) {
                    *sum = T::load::<L>(k.add(d)).fma(q, *sum);
                }
            }
            if rest > 0 {
                let last = L::load_part(q.as_ptr().add(whole), rest);
                for (sum, k) in sums.iter_mut().zip(k) {
                    *sum = T::load_part::<L>(k.add(whole), rest).fma(last, *sum);
                }
            }
            let sums = L::sums(sums);
            scores.copy_from_slice(&sums[..scores.len()]);
        }
    }
}

/// Turns scores into weights, `exp(scale * (score - largest))` over their sum.
#[inline(always)]
fn weigh<L: Lanes>(scores: &mut [f32], scale: f32) {
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let (whole, rest) = (scores.len() / L::N * L::N, scores.len() % L::N);
    // SAFETY: `reach`: all accesses are within the scores.
    unsafe {
        let (peak, scale) = (L::splat(largest), L::splat(scale));
        let mut sum = L::splat(0.0);
        for at in (0..whole).step_by(L::N) {
            let at = scores.as_mut_ptr().add(at);
            let weights = exp(L::load(at).sub(peak).mul(scale));
            weights.store(at);
            sum = sum.add(weights);
        }
        let last = scores.as_mut_ptr().add(whole);
        let weights = exp(L::load_part(last, rest).sub(peak).mul(scale));
        weights.store_part(last, rest);
        let inverse = 1.0 / (sum.sum() + scores[whole..].iter().sum::<f32>());
        scores.iter_mut().for_each(|weight| *weight *= inverse);
    }
}

/// `out += Σ weights[i] v[i]`.
#[inline(always)]
fn add_values<L: Lanes, T: Number>(weights: &[f32], values: RowsOf<T>, out: &mut [f32]) {
    let n = out.len();
    assert!(values.numbers.len() >= (values.n - 1) * values.stride + n);
    let step = SUMS * L::N;
    let whole = n / step * step;
    // SAFETY: `reach`: every row has as many numbers as `out`.
    unsafe {
        for d in (0..whole).step_by(step) {
            let to = out.as_mut_ptr().add(d);
            let mut sums: [L; SUMS] = std::array::from_fn(|at| L::load(to.add(at * L::N)));
            for (i, &weight) in weights.iter().enumerate() {
                let v = values.numbers.as_ptr().add(i * values.stride + d);
                let weight = L::splat(weight);
                for (at, sum) in sums.iter_mut().enumerate() {
                    *sum = T::load::<L>(v.add(at * L::N)).fma(weight, *sum);
                }
            }
            for (at, sum) in sums.into_iter().enumerate() {
                sum.store(to.add(at * L::N));
            }
        }
        for d in (whole..n).step_by(L::N) {
            let (left, to) = ((n - d).min(L::N), out.as_mut_ptr().add(d));
            let mut sum = load::<L, f32>(to, left);
            for (i, &weight) in weights.iter().enumerate() {
                let v: L = load(values.numbers.as_ptr().add(i * values.stride + d), left);
                sum = v.fma(L::splat(weight), sum);
            }
            if left == L::N {
                sum.store(to);
            } else {
                sum.store_part(to, left);
            }
        }
    }
}

/// `n` numbers, at most `L::N`.
///
/// # Safety
/// `reach`: `n` numbers are there, at most `L::N`.
#[inline(always)]
unsafe fn load<L: Lanes, T: Number>(from: *const T, n: usize) -> L {
    // SAFETY: passes on `reach`.
    unsafe {
        if n == L::N {
            T::load(from)
        } else {
            T::load_part(from, n)
        }
    }
}
