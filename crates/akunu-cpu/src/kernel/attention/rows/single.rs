//! Attention of single rows: all scores of a head, their weights, and the sum of the values.

use super::Job;
use crate::part::Scratch;
use crate::simd::{Lanes, exp};

/// Keys whose scores are made at once.
const KEYS: usize = 4;
/// Vectors of a head that are summed at once.
const SUMS: usize = 4;

/// Rows of a matrix: `n` of them, `stride` apart.
#[derive(Clone, Copy)]
struct RowsOf<'a> {
    numbers: &'a [f32],
    stride: usize,
    n: usize,
}

impl Job<'_> {
    /// Each query and head by itself.
    ///
    /// # Safety
    /// The rows of the output belong to this part; the CPU has the instructions.
    #[inline(always)]
    pub(super) unsafe fn run_singly<L: Lanes>(&self, scratch: &mut Scratch) {
        let (problem, head_dim, n) = (self.problem, self.problem.head_dim, self.keys.len());
        let first = self.keys.start * problem.stride + self.kv_head * head_dim;
        let rows_of = |numbers| RowsOf {
            numbers,
            stride: problem.stride,
            n,
        };
        for row in 0..self.n_queries * problem.group {
            let (query, head) = self.query_of(row);
            let q = &problem.q[problem.query_at(query, head)..][..head_dim];
            // SAFETY: by the caller's promise.
            let out = unsafe { problem.output(query, head) };
            if n == 0 {
                out.fill(0.0);
                continue;
            }
            let scores = scratch.take::<f32>(n);
            let (k, v) = (&problem.k[first..], &problem.v[first..]);
            // SAFETY: the CPU has the instructions; scores and rows are as many as there are keys.
            unsafe {
                score::<L>(q, rows_of(k), scores);
                let sum = weigh::<L>(scores, problem.params.scale);
                sum_values::<L>(scores, rows_of(v), 1.0 / sum, out);
            }
        }
    }
}

/// `scores[i] = q · k[i]`.
///
/// # Safety
/// The CPU has the instructions; there are as many keys as scores.
#[inline(always)]
unsafe fn score<L: Lanes>(q: &[f32], keys: RowsOf, scores: &mut [f32]) {
    let (whole, rest) = (q.len() / L::N * L::N, q.len() % L::N);
    assert!(keys.numbers.len() >= (keys.n - 1) * keys.stride + q.len() && scores.len() == keys.n);
    for (at, scores) in scores.chunks_mut(KEYS).enumerate() {
        // Behind the last key stands the last one again.
        let key = |i: usize| (at * KEYS + i).min(keys.n - 1) * keys.stride;
        // SAFETY: every row has as many numbers as q.
        unsafe {
            let k: [*const f32; KEYS] =
                std::array::from_fn(|i| keys.numbers.as_ptr().wrapping_add(key(i)));
            let mut sums = [L::splat(0.0); KEYS];
            for d in (0..whole).step_by(L::N) {
                let q = L::load(q.as_ptr().add(d));
                for (sum, k) in sums.iter_mut().zip(k) {
                    *sum = L::load(k.add(d)).fma(q, *sum);
                }
            }
            let last = L::load_part(q.as_ptr().add(whole), rest);
            for (sum, k) in sums.iter_mut().zip(k) {
                *sum = L::load_part(k.add(whole), rest).fma(last, *sum);
            }
            let sums = L::sums(sums);
            scores.copy_from_slice(&sums[..scores.len()]);
        }
    }
}

/// Turns scores into weights, `exp(scale * (score - largest))`; their sum is the result.
///
/// # Safety
/// The CPU has the instructions.
#[inline(always)]
unsafe fn weigh<L: Lanes>(scores: &mut [f32], scale: f32) -> f32 {
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let (whole, rest) = (scores.len() / L::N * L::N, scores.len() % L::N);
    // SAFETY: all accesses are within the scores.
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
        sum.sum() + scores[whole..].iter().sum::<f32>()
    }
}

/// `out = factor * Σ weights[i] v[i]`.
///
/// # Safety
/// The CPU has the instructions; there are as many values as weights.
#[inline(always)]
unsafe fn sum_values<L: Lanes>(weights: &[f32], values: RowsOf, factor: f32, out: &mut [f32]) {
    let n = out.len();
    assert!(values.numbers.len() >= (values.n - 1) * values.stride + n);
    let step = SUMS * L::N;
    let whole = n / step * step;
    // SAFETY: every row has as many numbers as `out`.
    unsafe {
        let factor = L::splat(factor);
        for d in (0..whole).step_by(step) {
            let mut sums = [L::splat(0.0); SUMS];
            for (i, &weight) in weights.iter().enumerate() {
                let v = values.numbers.as_ptr().add(i * values.stride + d);
                let weight = L::splat(weight);
                for (at, sum) in sums.iter_mut().enumerate() {
                    *sum = L::load(v.add(at * L::N)).fma(weight, *sum);
                }
            }
            for (at, sum) in sums.into_iter().enumerate() {
                sum.mul(factor).store(out.as_mut_ptr().add(d + at * L::N));
            }
        }
        for d in (whole..n).step_by(L::N) {
            let left = (n - d).min(L::N);
            let load = |at: *const f32| {
                if left == L::N {
                    L::load(at)
                } else {
                    L::load_part(at, left)
                }
            };
            let mut sum = L::splat(0.0);
            for (i, &weight) in weights.iter().enumerate() {
                let v = load(values.numbers.as_ptr().add(i * values.stride + d));
                sum = v.fma(L::splat(weight), sum);
            }
            let (sum, to) = (sum.mul(factor), out.as_mut_ptr().add(d));
            if left == L::N {
                sum.store(to);
            } else {
                sum.store_part(to, left);
            }
        }
    }
}
