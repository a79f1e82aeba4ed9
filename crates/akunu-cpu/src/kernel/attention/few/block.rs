//! What one block of keys adds to the state of a group of heads.
//!
//! Keys and values are read as halves and widened in registers, once for up to four heads, whose sums
//! stay in registers as well.

use half::f16;

use super::State;
use crate::kernel::attention::BLOCK;
use crate::simd::{Lanes, exp, prefetch};

/// Bytes ahead of the present ones that are fetched.
const AHEAD: usize = 4096;
/// Halves of a cache line.
const LINE: usize = 64 / size_of::<f16>();

/// Asks for what lies as far behind `n` halves as the products ask for weights.
#[inline(always)]
fn fetch_ahead(halves: *const f16, n: usize) {
    for line in (0..n).step_by(LINE) {
        prefetch(halves.wrapping_add(line).wrapping_byte_add(AHEAD));
    }
}

/// A block of keys of one KV head.
#[derive(Clone, Copy)]
pub(super) struct Block {
    /// Keys, at most [`BLOCK`].
    pub n: usize,
    /// Query heads that share them.
    pub group: usize,
    pub head_dim: usize,
}

impl Block {
    /// Heads that are worked on at once, so that all sums stay in registers.
    const fn heads_at_once<L: Lanes>() -> usize {
        if L::REGISTERS >= 32 { 4 } else { 2 }
    }

    /// `scores[g][key] = q[g] · k[key]`; what lies behind the block means nothing.
    ///
    /// # Safety
    /// That of [`super::run`].
    #[inline(always)]
    pub unsafe fn scores<L: Lanes>(self, q: &[f32], k: &[f16], scores: &mut [f32]) {
        let mut g = 0;
        while g < self.group {
            let (q, scores) = (&q[g * self.head_dim..], &mut scores[g * BLOCK..]);
            let n = Self::heads_at_once::<L>().min(self.group - g);
            // SAFETY: by the caller's promise; `n` heads are there.
            unsafe {
                match n {
                    1 => self.scores_of::<L, 1>(q, k, scores),
                    2 => self.scores_of::<L, 2>(q, k, scores),
                    3 => self.scores_of::<L, 3>(q, k, scores),
                    _ => self.scores_of::<L, 4>(q, k, scores),
                }
            }
            g += n;
        }
    }

    /// Hides what lies behind the last key. It comes after the soft cap, which would show it again.
    pub fn hide_rest(self, scores: &mut [f32]) {
        for scores in scores.chunks_exact_mut(BLOCK) {
            scores[self.n..].fill(f32::NEG_INFINITY);
        }
    }

    /// The same for `G` heads: four keys at a time.
    ///
    /// # Safety
    /// That of [`super::run`].
    #[inline(always)]
    unsafe fn scores_of<L: Lanes, const G: usize>(self, q: &[f32], k: &[f16], scores: &mut [f32]) {
        let head_dim = self.head_dim;
        assert!(q.len() >= G * head_dim && k.len() >= self.n * head_dim);
        assert!(scores.len() >= G * BLOCK && self.n <= BLOCK);
        // SAFETY: `d + N <= head_dim`, and rows are below `n`.
        unsafe {
            for key in (0..self.n).step_by(4) {
                let row = |i: usize| k.as_ptr().add((key + i).min(self.n - 1) * head_dim);
                let rows = [row(0), row(1), row(2), row(3)];
                rows.iter().for_each(|row| fetch_ahead(*row, head_dim));
                let mut sums = [[L::splat(0.0); 4]; G];
                for d in (0..head_dim).step_by(L::N) {
                    let [k0, k1, k2, k3] = rows;
                    let k0 = L::load_halves(k0.add(d));
                    let k1 = L::load_halves(k1.add(d));
                    let k2 = L::load_halves(k2.add(d));
                    let k3 = L::load_halves(k3.add(d));
                    for (g, sums) in sums.iter_mut().enumerate() {
                        let q = L::load(q.as_ptr().add(g * head_dim + d));
                        sums[0] = q.fma(k0, sums[0]);
                        sums[1] = q.fma(k1, sums[1]);
                        sums[2] = q.fma(k2, sums[2]);
                        sums[3] = q.fma(k3, sums[3]);
                    }
                }
                for (g, sums) in sums.into_iter().enumerate() {
                    scores[g * BLOCK + key..][..4].copy_from_slice(&L::sums(sums));
                }
            }
        }
    }

    /// Turns scores into weights and rescales what was summed before.
    ///
    /// # Safety
    /// That of [`super::run`].
    #[inline(always)]
    pub unsafe fn weigh<L: Lanes>(self, state: &mut State, scores: &mut [f32]) {
        let len = self.n.next_multiple_of(L::N);
        for (g, scores) in scores.chunks_exact_mut(BLOCK).take(self.group).enumerate() {
            // SAFETY: `len` is a multiple of `N`, at most the length of the block.
            unsafe {
                let mut largest = L::splat(state.peaks[g]);
                for scores in scores[..len].chunks_exact(L::N) {
                    largest = L::load(scores.as_ptr()).max(largest);
                }
                let peak = largest.largest();
                let mut weight = L::splat(0.0);
                for scores in scores[..len].chunks_exact_mut(L::N) {
                    let weights = exp(L::load(scores.as_ptr()).sub(L::splat(peak)));
                    weights.store(scores.as_mut_ptr());
                    weight = weight.add(weights);
                }
                let factor = (state.peaks[g] - peak).exp();
                state.peaks[g] = peak;
                state.weights[g] = state.weights[g] * factor + weight.sum();
                if factor != 1.0 {
                    let sums = &mut state.sums[g * self.head_dim..][..self.head_dim];
                    for sums in sums.chunks_exact_mut(L::N) {
                        let scaled = L::load(sums.as_ptr()).mul(L::splat(factor));
                        scaled.store(sums.as_mut_ptr());
                    }
                }
            }
        }
    }

    /// `sums[g] += Σ weights[g][key] * v[key]`.
    ///
    /// # Safety
    /// That of [`super::run`].
    #[inline(always)]
    pub unsafe fn sum<L: Lanes>(self, weights: &[f32], v: &[f16], sums: &mut [f32]) {
        let mut g = 0;
        while g < self.group {
            let (weights, sums) = (&weights[g * BLOCK..], &mut sums[g * self.head_dim..]);
            let n = Self::heads_at_once::<L>().min(self.group - g);
            // SAFETY: by the caller's promise; `n` heads are there.
            unsafe {
                match n {
                    1 => self.sum_of::<L, 1>(weights, v, sums),
                    2 => self.sum_of::<L, 2>(weights, v, sums),
                    3 => self.sum_of::<L, 3>(weights, v, sums),
                    _ => self.sum_of::<L, 4>(weights, v, sums),
                }
            }
            g += n;
        }
    }

    /// The same for `G` heads: four vectors of the head at a time, or one.
    ///
    /// # Safety
    /// That of [`super::run`].
    #[inline(always)]
    unsafe fn sum_of<L: Lanes, const G: usize>(self, weights: &[f32], v: &[f16], sums: &mut [f32]) {
        let wide = self.head_dim / (4 * L::N) * (4 * L::N);
        // SAFETY: by the caller's promise; `d` plus the width stays within the head.
        unsafe {
            for d in (0..wide).step_by(4 * L::N) {
                self.sum_at::<L, G, 4>(weights, v, sums, d);
            }
            for d in (wide..self.head_dim).step_by(L::N) {
                self.sum_at::<L, G, 1>(weights, v, sums, d);
            }
        }
    }

    /// The same for `C` vectors from element `d` of the head on.
    ///
    /// # Safety
    /// That of [`super::run`]; `d + C * N` is within the head.
    #[inline(always)]
    unsafe fn sum_at<L: Lanes, const G: usize, const C: usize>(
        self,
        weights: &[f32],
        v: &[f16],
        sums: &mut [f32],
        d: usize,
    ) {
        let head_dim = self.head_dim;
        assert!(sums.len() >= G * head_dim && v.len() >= self.n * head_dim);
        assert!(weights.len() >= G * BLOCK && d + C * L::N <= head_dim && self.n <= BLOCK);
        // SAFETY: all places are below the lengths that were just compared.
        unsafe {
            let mut totals = [[L::splat(0.0); C]; G];
            for (g, totals) in totals.iter_mut().enumerate() {
                for (c, total) in totals.iter_mut().enumerate() {
                    *total = L::load(sums.as_ptr().add(g * head_dim + d + c * L::N));
                }
            }
            for key in 0..self.n {
                let row = v.as_ptr().add(key * head_dim + d);
                fetch_ahead(row, C * L::N);
                let mut values = [L::splat(0.0); C];
                for (c, value) in values.iter_mut().enumerate() {
                    *value = L::load_halves(row.add(c * L::N));
                }
                for (g, totals) in totals.iter_mut().enumerate() {
                    let weight = L::splat(*weights.as_ptr().add(g * BLOCK + key));
                    for (total, value) in totals.iter_mut().zip(values) {
                        *total = weight.fma(value, *total);
                    }
                }
            }
            for (g, totals) in totals.into_iter().enumerate() {
                for (c, total) in totals.into_iter().enumerate() {
                    total.store(sums.as_mut_ptr().add(g * head_dim + d + c * L::N));
                }
            }
        }
    }
}
