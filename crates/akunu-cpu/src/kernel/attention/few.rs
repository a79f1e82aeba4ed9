//! Attention of few queries, in one pass over the keys.
//!
//! For a block of keys: the scores of all heads of a group, `q · k`; the largest score so far, `m`; the
//! weights `exp(score - m)`; and `sum = sum * exp(m_before - m) + Σ weight * v`, likewise the sum of
//! the weights. The output is one sum over the other.
//!
//! Many keys are cut into runs of [`RUN`], which the parts take as they can; the sums of the runs are put together
//! afterwards: with `m` the largest score of all runs, each run's sums count `exp(m_run - m)` times. How keys are cut
//! depends on their number alone, so that the result is the same for every number of threads.

mod block;

use std::ops::Range;

use akunu_kernels::kernel::attention;
use akunu_types::params::AttentionParams;

use self::block::Block;
use super::{BLOCK, LOWEST, Problem};
use crate::part::{Part, Scratch};
use crate::simd::Lanes;

/// The largest head that the kernels of the table take.
const MAX_HEAD_DIM: usize = attention::MAX_HEAD_DIM as usize;

/// Keys that are attended to in one go: some microseconds of work.
const RUN: usize = 128;

/// Floats that the sums of all runs take with `n_keys` keys in the cache.
pub(super) fn shared_len(n_queries: usize, params: &AttentionParams, n_keys: usize) -> usize {
    let heads = params.n_heads as usize;
    let of_heads = n_queries * heads * (MAX_HEAD_DIM + 2);
    of_heads * n_keys.div_ceil(RUN)
}

/// All queries. `shared` has room for the sums of all runs.
///
/// # Safety
/// The CPU has the instructions of `L`, as for all functions of this file.
#[inline(always)]
pub(super) unsafe fn run<L: Lanes>(problem: &Problem, part: &mut Part, shared: *mut f32) {
    let n_units = problem.n_queries * problem.n_kv_heads;
    let n_runs = problem.mask.keys(problem.n_queries - 1).len().div_ceil(RUN);
    let sums = Sums {
        problem,
        n_runs: n_runs.max(1),
        first: shared,
    };
    let mut pieces = part.divide(n_units * sums.n_runs);
    while let Some(items) = part.take(&mut pieces) {
        for item in items {
            // SAFETY: each item belongs to one part.
            unsafe { sums.attend::<L>(item, part.scratch) };
        }
    }
    if sums.n_runs > 1 {
        part.wait();
        for row in part.range(n_units * problem.group) {
            // SAFETY: all runs have ended, and each row is one part's.
            unsafe { sums.merge(row / problem.group, row % problem.group) };
        }
    }
}

/// The sums of each run of keys for each unit: a query and a KV head.
struct Sums<'a> {
    problem: &'a Problem<'a>,
    n_runs: usize,
    /// A state for each run of each unit.
    first: *mut f32,
}

impl Sums<'_> {
    /// The query and the KV head of a unit.
    fn unit(&self, unit: usize) -> (usize, usize) {
        (
            unit / self.problem.n_kv_heads,
            unit % self.problem.n_kv_heads,
        )
    }

    /// Attends to one run of one unit. If there is no other run, the output is stored.
    ///
    /// # Safety
    /// That of [`run`], and nobody else has this item.
    #[inline(always)]
    unsafe fn attend<L: Lanes>(&self, item: usize, scratch: &mut Scratch) {
        let problem = self.problem;
        let (unit, run) = (item / self.n_runs, item % self.n_runs);
        let (query, kv_head) = self.unit(unit);
        let keys = problem.mask.keys(query);
        let from = (keys.start + run * RUN).min(keys.end);
        let keys = from..(from + RUN).min(keys.end);
        let len = State::len(problem);
        let memory = scratch.take::<f32>(len + room(problem));
        let (own, memory) = memory.split_at_mut(len);
        let state = match self.n_runs {
            1 => own,
            // SAFETY: the item's place is within the shared memory, and nobody else's.
            _ => unsafe { std::slice::from_raw_parts_mut(self.first.add(item * len), len) },
        };
        let mut state = State::of(problem, state);
        // SAFETY: by the caller's promise.
        unsafe { state.attend::<L>(problem, (query, kv_head), keys, memory) };
        if self.n_runs > 1 {
            return;
        }
        for g in 0..problem.group {
            let sum = &state.sums[g * problem.head_dim..][..problem.head_dim];
            let head = kv_head * problem.group + g;
            // SAFETY: the outputs of a unit are those of its item.
            unsafe { problem.finish(query, head, sum, state.weights[g]) };
        }
    }

    /// Puts the sums of all runs for head `g` of a unit together and stores the output.
    ///
    /// # Safety
    /// All runs have ended, and the output belongs to this part.
    unsafe fn merge(&self, unit: usize, g: usize) {
        let problem = self.problem;
        let (len, head_dim, group) = (State::len(problem), problem.head_dim, problem.group);
        let state = |run: usize| {
            let at = (unit * self.n_runs + run) * len;
            // SAFETY: by the caller's promise nobody writes there any more.
            unsafe { std::slice::from_raw_parts(self.first.add(at), len) }
        };
        let peak_of = |run: usize| state(run)[group * head_dim + g];
        let peak = (0..self.n_runs).map(peak_of).fold(LOWEST, f32::max);
        let mut weight = 0.0;
        let total = &mut [0.0; MAX_HEAD_DIM][..head_dim];
        for run in 0..self.n_runs {
            let factor = (peak_of(run) - peak).exp();
            weight += factor * state(run)[group * (head_dim + 1) + g];
            for (total, sum) in total.iter_mut().zip(&state(run)[g * head_dim..]) {
                *total += factor * sum;
            }
        }
        let (query, kv_head) = self.unit(unit);
        // SAFETY: by the caller's promise.
        unsafe { problem.finish(query, kv_head * group + g, total, weight) };
    }
}

/// Floats of scratch that [`State::attend`] wants.
fn room(problem: &Problem) -> usize {
    problem.group * (problem.head_dim + BLOCK)
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
