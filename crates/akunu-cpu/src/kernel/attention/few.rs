//! Attention of few queries, in one pass over the keys.
//!
//! For a block of keys: the scores of all heads of a group, `q · k`; the largest score so far, `m`; the
//! weights `exp(score - m)`; and `sum = sum * exp(m_before - m) + Σ weight * v`, likewise the sum of
//! the weights. The output is one sum over the other.
//!
//! Where the KV heads cannot be shared evenly, each part takes a share of the keys of every head, and
//! the sums of the parts are put together: with `m` the largest of all parts, each part's sums count
//! `exp(m_part - m)` times.

mod block;

use std::ops::Range;

use akunu_kernels::kernel::attention;

use self::block::Block;
use super::{BLOCK, LOWEST, Problem};
use crate::part::Part;
use crate::simd::Lanes;

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
                let len = State::len(problem);
                let memory = part.scratch.take::<f32>(len + room(problem));
                let (state, memory) = memory.split_at_mut(len);
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
                block.hide_rest(scores);
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
