//! What one block of keys adds to the state of a group of heads.
//!
//! Keys and values are widened in registers, once for up to four heads, whose sums stay in registers as well. The
//! scales of those in 8 bits become floats before.

use akunu_kernels::kernel::pages::SlotAt;

use super::state::State;
use crate::kernel::attention::blocks::BLOCK;
use crate::kernel::stored::{Stored, widen_halves};
use crate::simd::{Lanes, exp, prefetch};

/// Bytes ahead of the present ones that are fetched, about: as far as the products ask for weights.
const AHEAD: usize = 4096;
/// Bytes of a cache line.
const LINE: usize = 64;

/// Keys of as many bytes ahead of the present ones that are fetched. A multiple of 4, as many as scores are made of at
/// once.
pub(super) fn keys_ahead(key_bytes: usize) -> usize {
    AHEAD.div_ceil(key_bytes).next_multiple_of(4)
}

/// Keys, or values, that lie one after the other, and are as far from those to be fetched.
#[derive(Clone, Copy)]
pub(super) struct Stretch {
    /// The first one's place in the block.
    pub key: usize,
    /// How many.
    pub n: usize,
    /// The first one's place in the pool.
    pub at: SlotAt,
    /// Bytes from each to what is fetched with it: further on in the page, or in the next one.
    pub ahead: isize,
}

/// A stretch in memory.
#[derive(Clone, Copy)]
pub(super) struct Numbers<'a> {
    /// (n, head_dim), as they are stored.
    numbers: &'a [u8],
    /// (n, scales of a head).
    scales: &'a [f32],
    ahead: isize,
}

impl Numbers<'_> {
    /// Whether there are as many keys.
    #[inline(always)]
    fn has<S: Stored>(&self, n: usize, head_dim: usize) -> bool {
        self.numbers.len() >= n * head_dim * S::BYTES
            && self.scales.len() >= n * S::n_scales(head_dim)
    }

    /// The numbers and the scales of a key.
    ///
    /// # Safety
    /// `reach`: there is such a key.
    #[inline(always)]
    unsafe fn key<S: Stored>(&self, key: usize, head_dim: usize) -> (*const u8, *const f32) {
        // SAFETY: passes on `reach`.
        unsafe {
            (
                self.numbers.as_ptr().add(key * head_dim * S::BYTES),
                self.scales.as_ptr().add(key * S::n_scales(head_dim)),
            )
        }
    }
}

impl Stretch {
    /// No keys.
    pub const EMPTY: Stretch = Stretch {
        key: 0,
        n: 0,
        at: SlotAt {
            numbers: 0,
            scales: 0,
        },
        ahead: 0,
    };

    /// The stretch of a pool of pages. Its scales are widened into memory that has room for those of a block.
    #[inline(always)]
    pub fn of<'a, L: Lanes, S: Stored>(
        &self,
        pool: &'a [u8],
        head_dim: usize,
        scales: &'a mut [f32],
    ) -> Numbers<'a> {
        let scales = &mut scales[..self.n * S::n_scales(head_dim)];
        widen_halves::<L>(&pool[self.at.scales..], scales);
        Numbers {
            numbers: &pool[self.at.numbers..][..self.n * head_dim * S::BYTES],
            scales,
            ahead: self.ahead,
        }
    }
}

/// Asks for what lies `ahead` of `n` bytes.
#[inline(always)]
fn fetch_ahead(bytes: *const u8, n: usize, ahead: isize) {
    for line in (0..n).step_by(LINE) {
        prefetch(bytes.wrapping_add(line).wrapping_offset(ahead));
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
    /// The keys of a stretch.
    #[inline(always)]
    pub fn part(self, stretch: &Stretch) -> Block {
        Block {
            n: stretch.n,
            ..self
        }
    }

    /// Heads that are worked on at once: keys and values are widened anew for the next ones.
    const HEADS: usize = 4;

    /// Whether the sums of many heads, four for each, stay in registers; if not, there are two for each.
    const fn has_registers<L: Lanes>(heads: usize) -> bool {
        4 * heads + 8 <= L::REGISTERS
    }

    /// `scores[g][key] = q[g] · k[key]`; what lies up to three keys behind the last means nothing.
    #[inline(always)]
    pub fn scores<L: Lanes, S: Stored>(self, q: &[f32], k: Numbers, scores: &mut [f32]) {
        let mut g = 0;
        while g < self.group {
            let (q, scores) = (&q[g * self.head_dim..], &mut scores[g * BLOCK..]);
            let n = Self::HEADS.min(self.group - g);
            match n {
                1 => self.scores_of_heads::<L, S, 1>(q, k, scores),
                2 => self.scores_of_heads::<L, S, 2>(q, k, scores),
                3 => self.scores_of_heads::<L, S, 3>(q, k, scores),
                _ => self.scores_of_heads::<L, S, 4>(q, k, scores),
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

    /// The same for `G` heads: four keys at a time, or two.
    #[inline(always)]
    fn scores_of_heads<L: Lanes, S: Stored, const G: usize>(
        self,
        q: &[f32],
        k: Numbers,
        scores: &mut [f32],
    ) {
        if const { Self::has_registers::<L>(G) } {
            self.scores_of::<L, S, G, 4>(q, k, scores);
        } else {
            self.scores_of::<L, S, G, 2>(q, k, scores);
        }
    }

    /// The same for `G` heads: `K` keys at a time, four or two.
    #[inline(always)]
    fn scores_of<L: Lanes, S: Stored, const G: usize, const K: usize>(
        self,
        q: &[f32],
        k: Numbers,
        scores: &mut [f32],
    ) {
        let head_dim = self.head_dim;
        assert!(q.len() >= G * head_dim && k.has::<S>(self.n, head_dim));
        // SAFETY: `d + N <= head_dim`, and rows are below `n`.
        unsafe {
            for key in (0..self.n).step_by(K) {
                let row = |i: usize| k.key::<S>((key + i).min(self.n - 1), head_dim);
                let rows: [_; K] = std::array::from_fn(row);
                for (numbers, _) in rows {
                    fetch_ahead(numbers, head_dim * S::BYTES, k.ahead);
                }
                let mut sums = [[L::splat(0.0); K]; G];
                for d in (0..head_dim).step_by(L::N) {
                    let mut keys = [L::splat(0.0); K];
                    for (key, (numbers, scales)) in keys.iter_mut().zip(rows) {
                        *key = S::load::<L>(numbers, scales, d);
                    }
                    for (g, sums) in sums.iter_mut().enumerate() {
                        let q = L::load(q.as_ptr().add(g * head_dim + d));
                        for (sum, key) in sums.iter_mut().zip(keys) {
                            *sum = q.fma(key, *sum);
                        }
                    }
                }
                for (g, sums) in sums.into_iter().enumerate() {
                    let zero = L::splat(0.0);
                    let four = std::array::from_fn(|i| *sums.get(i).unwrap_or(&zero));
                    let to = &mut scores[g * BLOCK + key..][..K];
                    to.copy_from_slice(&L::sums(four)[..K]);
                }
            }
        }
    }

    /// Turns scores into weights and rescales what was summed before.
    #[inline(always)]
    pub fn weigh<L: Lanes>(self, state: &mut State, scores: &mut [f32]) {
        let heads = scores.as_chunks_mut().0.iter_mut();
        for (g, scores) in heads.take(self.group).enumerate() {
            // SAFETY: `reach`: a head is whole vectors.
            unsafe {
                let peak = largest::<L>(state.peaks[g], scores);
                let weight = weights_of::<L>(scores, peak);
                let factor = if state.peaks[g] == peak {
                    1.0
                } else {
                    (state.peaks[g] - peak).exp()
                };
                state.peaks[g] = peak;
                state.weights[g] = state.weights[g] * factor + weight;
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
    #[inline(always)]
    pub fn sum<L: Lanes, S: Stored>(self, weights: &[f32], v: Numbers, sums: &mut [f32]) {
        let mut g = 0;
        while g < self.group {
            let (weights, sums) = (&weights[g * BLOCK..], &mut sums[g * self.head_dim..]);
            let n = Self::HEADS.min(self.group - g);
            match n {
                1 => self.sum_of::<L, S, 1>(weights, v, sums),
                2 => self.sum_of::<L, S, 2>(weights, v, sums),
                3 => self.sum_of::<L, S, 3>(weights, v, sums),
                _ => self.sum_of::<L, S, 4>(weights, v, sums),
            }
            g += n;
        }
    }

    /// The same for `G` heads: as many vectors of the head at a time as have registers, or one.
    #[inline(always)]
    fn sum_of<L: Lanes, S: Stored, const G: usize>(
        self,
        weights: &[f32],
        v: Numbers,
        sums: &mut [f32],
    ) {
        let at_once = const { if Self::has_registers::<L>(G) { 4 } else { 2 } };
        let wide = self.head_dim / (at_once * L::N) * (at_once * L::N);
        for d in (0..wide).step_by(at_once * L::N) {
            if const { Self::has_registers::<L>(G) } {
                self.sum_at::<L, S, G, 4>(weights, v, sums, d);
            } else {
                self.sum_at::<L, S, G, 2>(weights, v, sums, d);
            }
        }
        for d in (wide..self.head_dim).step_by(L::N) {
            self.sum_at::<L, S, G, 1>(weights, v, sums, d);
        }
    }

    /// The same for `C` vectors from element `d` of the head on.
    #[inline(always)]
    fn sum_at<L: Lanes, S: Stored, const G: usize, const C: usize>(
        self,
        weights: &[f32],
        v: Numbers,
        sums: &mut [f32],
        d: usize,
    ) {
        let head_dim = self.head_dim;
        assert!(sums.len() >= G * head_dim && v.has::<S>(self.n, head_dim));
        assert!(weights.len() >= (G - 1) * BLOCK + self.n && d + C * L::N <= head_dim);
        // SAFETY: `reach`: all places are below the lengths that were just compared.
        unsafe {
            let mut totals = [[L::splat(0.0); C]; G];
            for (g, totals) in totals.iter_mut().enumerate() {
                for (c, total) in totals.iter_mut().enumerate() {
                    *total = L::load(sums.as_ptr().add(g * head_dim + d + c * L::N));
                }
            }
            for key in 0..self.n {
                let (numbers, scales) = v.key::<S>(key, head_dim);
                fetch_ahead(numbers.add(d * S::BYTES), C * L::N * S::BYTES, v.ahead);
                let mut values = [L::splat(0.0); C];
                for (c, value) in values.iter_mut().enumerate() {
                    *value = S::load::<L>(numbers, scales, d + c * L::N);
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

/// The largest of a number and of the scores of a head.
#[inline(always)]
pub(super) fn largest<L: Lanes>(peak: f32, scores: &[f32; BLOCK]) -> f32 {
    // SAFETY: `reach`: a block is whole vectors, four and more.
    unsafe {
        let mut largest = [L::splat(peak); 4];
        for scores in scores.chunks_exact(4 * L::N) {
            for (i, largest) in largest.iter_mut().enumerate() {
                *largest = L::load(scores.as_ptr().add(i * L::N)).max(*largest);
            }
        }
        let [a, b, c, d] = largest;
        a.max(b).max(c.max(d)).largest()
    }
}

/// Turns the scores of a head into weights, and gives their sum.
#[inline(always)]
pub(super) fn weights_of<L: Lanes>(scores: &mut [f32; BLOCK], peak: f32) -> f32 {
    // SAFETY: `reach`: a block is whole vectors, four and more.
    unsafe {
        let mut sums = [L::splat(0.0); 4];
        for scores in scores.chunks_exact_mut(4 * L::N) {
            for (i, sum) in sums.iter_mut().enumerate() {
                let at = scores.as_mut_ptr().add(i * L::N);
                let weight = exp(L::load(at).sub(L::splat(peak)));
                weight.store(at);
                *sum = sum.add(weight);
            }
        }
        let [a, b, c, d] = sums;
        a.add(b).add(c.add(d)).sum()
    }
}
