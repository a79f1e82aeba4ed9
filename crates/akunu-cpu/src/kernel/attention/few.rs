//! Attention of few queries, in one pass over the keys.
//!
//! For a block of keys: the scores of all heads of a group, `q · k`; the largest score so far, `m`; the
//! weights `exp(score - m)`; and `sum = sum * exp(m_before - m) + Σ weight * v`, likewise the sum of
//! the weights. The output is one sum over the other.
//!
//! Where the KV heads cannot be shared evenly, each part takes a share of the keys of every head, and
//! the sums of the parts are put together: with `m` the largest of all parts, each part's sums count
//! `exp(m_part - m)` times.

use std::ops::Range;

use akunu_kernels::kernel::attention;

use super::{BLOCK, LOWEST, Problem};
use crate::part::Part;
use crate::simd::{Lanes, exp};

/// The largest head that the kernels of the table take.
const MAX_HEAD_DIM: usize = attention::MAX_HEAD_DIM as usize;

/// With fewer keys than this a head is not worth sharing.
const MIN_SHARED_KEYS: usize = 48;

/// All queries.
///
/// # Safety
/// The CPU has the instructions of `L`, as for all functions of this file.
#[inline(always)]
pub(super) unsafe fn run<L: Lanes>(problem: &Problem, part: &mut Part) {
    let n_units = problem.n_queries * problem.n_kv_heads;
    let n_keys = problem.mask.keys(problem.n_queries - 1).len();
    // SAFETY: each unit, and in `merge` each output, belongs to one part.
    unsafe {
        if n_units.is_multiple_of(part.count) || n_keys < MIN_SHARED_KEYS {
            for unit in part.range(n_units) {
                let (query, kv_head) = (unit / problem.n_kv_heads, unit % problem.n_kv_heads);
                let keys = problem.mask.keys(query);
                let memory = part
                    .scratch
                    .take::<f32>(2 * State::len(problem) + room(problem));
                let (state, memory) = memory.split_at_mut(State::len(problem));
                let mut state = State::of(problem, state);
                state.attend::<L>(problem, (query, kv_head), keys, memory);
                for g in 0..problem.group {
                    let head = kv_head * problem.group + g;
                    let sum = &state.sums[g * problem.head_dim..][..problem.head_dim];
                    problem.finish(query, head, sum, state.weights[g]);
                }
            }
        } else {
            share::<L>(problem, part, n_units);
        }
    }
}

/// Floats of scratch that [`State::attend`] wants.
fn room(problem: &Problem) -> usize {
    problem.group * (problem.head_dim + BLOCK)
}

/// Each part attends to its share of the keys of every unit, then the parts' sums are put together.
///
/// # Safety
/// That of [`run`].
#[inline(always)]
unsafe fn share<L: Lanes>(problem: &Problem, part: &mut Part, n_units: usize) {
    let len = State::len(problem);
    let (index, count) = (part.index, part.count);
    let (posted, scratch) = part.post(n_units * len);
    for (unit, state) in posted.chunks_exact_mut(len).enumerate() {
        let (query, kv_head) = (unit / problem.n_kv_heads, unit % problem.n_kv_heads);
        let keys = problem.mask.keys(query);
        let at = |part: usize| keys.start + keys.len() * part / count;
        let own = at(index)..at(index + 1);
        let mut state = State::of(problem, state);
        let room = scratch.take::<f32>(room(problem));
        // SAFETY: by the caller's promise.
        unsafe { state.attend::<L>(problem, (query, kv_head), own, room) };
    }
    part.wait();
    for row in part.range(n_units * problem.group) {
        let (unit, g) = (row / problem.group, row % problem.group);
        // SAFETY: each row is one part's.
        unsafe { merge(problem, part, n_units, (unit, g)) };
    }
}

/// Puts the sums of all parts for one head of a unit together and stores the output.
///
/// # Safety
/// The output belongs to this part.
#[inline(always)]
unsafe fn merge(problem: &Problem, part: &Part, n_units: usize, (unit, g): (usize, usize)) {
    let (len, head_dim, group) = (State::len(problem), problem.head_dim, problem.group);
    let state = |n: usize| &part.posted(n, n_units * len)[unit * len..][..len];
    let peak_of = |n: usize| state(n)[group * head_dim + g];
    let peak = (0..part.count).map(peak_of).fold(LOWEST, f32::max);
    let mut weight = 0.0;
    let total = &mut [0.0; MAX_HEAD_DIM][..head_dim];
    for n in 0..part.count {
        let factor = (peak_of(n) - peak).exp();
        weight += factor * state(n)[group * (head_dim + 1) + g];
        for (total, sum) in total.iter_mut().zip(&state(n)[g * head_dim..]) {
            *total += factor * sum;
        }
    }
    let (query, kv_head) = (unit / problem.n_kv_heads, unit % problem.n_kv_heads);
    // SAFETY: by the caller's promise.
    unsafe { problem.finish(query, kv_head * group + g, total, weight) };
}

/// What is known after some keys, for each head of a group.
struct State<'a> {
    /// Weighted sums of the values, (group, head_dim).
    sums: &'a mut [f32],
    /// The largest scores.
    peaks: &'a mut [f32],
    /// Sums of the weights.
    weights: &'a mut [f32],
}

impl<'a> State<'a> {
    /// Floats of a state.
    fn len(problem: &Problem) -> usize {
        problem.group * (problem.head_dim + 2)
    }

    /// The state before any key.
    fn of(problem: &Problem, memory: &'a mut [f32]) -> State<'a> {
        let group = problem.group;
        let (sums, rest) = memory.split_at_mut(group * problem.head_dim);
        let (peaks, rest) = rest.split_at_mut(group);
        let weights = &mut rest[..group];
        sums.fill(0.0);
        peaks.fill(LOWEST);
        weights.fill(0.0);
        State {
            sums,
            peaks,
            weights,
        }
    }

    /// Attends to some keys.
    ///
    /// # Safety
    /// That of [`run`].
    #[inline(always)]
    unsafe fn attend<L: Lanes>(
        &mut self,
        problem: &Problem,
        (query, kv_head): (usize, usize),
        keys: Range<usize>,
        memory: &mut [f32],
    ) {
        let (group, head_dim) = (problem.group, problem.head_dim);
        let (q, scores) = memory.split_at_mut(group * head_dim);
        for g in 0..group {
            let at = problem.query_at(query, kv_head * group + g);
            let scaled = q[g * head_dim..].iter_mut().zip(&problem.q[at..]);
            for (q, x) in scaled.take(head_dim) {
                *q = x * problem.params.scale;
            }
        }
        let mut first = keys.start;
        while first < keys.end {
            // A block ends where the ring does.
            let to_wrap = problem.n_slots - first % problem.n_slots;
            let n = BLOCK.min(keys.end - first).min(to_wrap);
            let at = problem.row_at(kv_head, first);
            let (k, v) = (
                &problem.k[at..][..n * head_dim],
                &problem.v[at..][..n * head_dim],
            );
            let block = Block { n, group, head_dim };
            // SAFETY: by the caller's promise; the slices have the lengths that the block says.
            unsafe {
                block.scores::<L>(q, k, scores);
                problem.cap::<L>(&mut scores[..group * BLOCK]);
                if problem.mask.has_tree() {
                    hide(problem, query, first, scores);
                }
                block.weigh::<L>(self, scores);
                block.sum::<L>(scores, v, self.sums);
            }
            first += n;
        }
    }
}

/// Hides what the tree mask does not name.
fn hide(problem: &Problem, query: usize, first: usize, scores: &mut [f32]) {
    for scores in scores.chunks_exact_mut(BLOCK) {
        for (at, score) in scores.iter_mut().enumerate() {
            if !problem.mask.visible(query, first + at) {
                *score = f32::NEG_INFINITY;
            }
        }
    }
}

/// A block of keys of one KV head.
#[derive(Clone, Copy)]
struct Block {
    n: usize,
    group: usize,
    head_dim: usize,
}

impl Block {
    /// Heads that are worked on at once, so that all sums stay in registers.
    const fn heads_at_once<L: Lanes>() -> usize {
        if L::REGISTERS >= 32 { 4 } else { 2 }
    }

    /// `scores[g][key] = q[g] · k[key]`; those behind the block are -inf.
    ///
    /// # Safety
    /// That of [`run`].
    #[inline(always)]
    unsafe fn scores<L: Lanes>(self, q: &[f32], k: &[half::f16], scores: &mut [f32]) {
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
        for scores in scores.chunks_exact_mut(BLOCK) {
            scores[self.n..].fill(f32::NEG_INFINITY);
        }
    }

    /// The same for `G` heads: four keys at a time.
    ///
    /// # Safety
    /// That of [`run`].
    #[inline(always)]
    unsafe fn scores_of<L: Lanes, const G: usize>(
        self,
        q: &[f32],
        k: &[half::f16],
        scores: &mut [f32],
    ) {
        let head_dim = self.head_dim;
        assert!(q.len() >= G * head_dim && k.len() >= self.n * head_dim);
        assert!(scores.len() >= G * BLOCK && self.n <= BLOCK);
        // SAFETY: `d + N <= head_dim`, and rows are below `n`.
        unsafe {
            for key in (0..self.n).step_by(4) {
                let row = |i: usize| k.as_ptr().add((key + i).min(self.n - 1) * head_dim);
                let rows = [row(0), row(1), row(2), row(3)];
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
    /// That of [`run`].
    #[inline(always)]
    unsafe fn weigh<L: Lanes>(self, state: &mut State, scores: &mut [f32]) {
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
    /// That of [`run`].
    #[inline(always)]
    unsafe fn sum<L: Lanes>(self, weights: &[f32], v: &[half::f16], sums: &mut [f32]) {
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
    /// That of [`run`].
    #[inline(always)]
    unsafe fn sum_of<L: Lanes, const G: usize>(
        self,
        weights: &[f32],
        v: &[half::f16],
        sums: &mut [f32],
    ) {
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
    /// That of [`run`]; `d + C * N` is within the head.
    #[inline(always)]
    unsafe fn sum_at<L: Lanes, const G: usize, const C: usize>(
        self,
        weights: &[f32],
        v: &[half::f16],
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
                let mut values = [L::splat(0.0); C];
                for (c, value) in values.iter_mut().enumerate() {
                    *value = L::load_halves(v.as_ptr().add(key * head_dim + d + c * L::N));
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
