//! Attention of single rows, in one pass over the keys.
//!
//! For a block of keys: the scores of all heads of a group, `q · k`; the largest score so far, `m`; the
//! weights `exp(score - m)`; and `sum = sum * exp(m_before - m) + Σ weight * v`, likewise the sum of
//! the weights. The output is one sum over the other.
//!
//! Many keys are cut into runs of [`RUN`]. The runs of all rows and KV heads are the items that the parts take as they
//! can, so that long rows are shared by all; the sums of the runs are put together afterwards: with `m` the largest
//! score of all runs, each run's sums count `exp(m_run - m)` times. How keys are cut depends on them alone, so that
//! the result is the same for every number of threads and in every batch.
//!
//! The sums of all runs wait in memory that the parts share. Where it does not hold those of all rows, the rows are
//! done in several rounds.

mod block;
#[cfg(target_arch = "x86_64")]
mod bytes;
mod floats;
mod keys;
mod scratch;
mod state;

use std::ops::Range;

use akunu_kernels::kernel::attention;
use akunu_kernels::kernel::pages::Pages;
use akunu_types::params::AttentionParams;

use self::keys::Keys;
use self::scratch::Scratch;
use self::state::State;
use super::blocks::LOWEST;
use super::problem::Problem;
use crate::call::Call;
use crate::part::Part;
use crate::simd::{Lanes, exp};

#[cfg(target_arch = "x86_64")]
pub(super) use self::bytes::Bytes;
pub(super) use self::floats::Floats;
pub(super) use self::keys::Way;

/// The largest head that the kernels of the table take.
const MAX_HEAD_DIM: usize = attention::MAX_DECODE_HEAD_DIM as usize;

/// Keys that are attended to in one go: some microseconds of work.
const RUN: usize = 128;

/// The shared memory holds the runs of as many rows, if they are as long as a sequence can be.
const LONGEST_ROWS: usize = 8;

/// Floats of memory that the parts share: the sums of each run of each KV head.
pub(super) fn shared_len(p: &AttentionParams, pages: &Pages) -> usize {
    let of_a_run = p.n_heads as usize * (p.head_dim as usize + 2);
    let n_runs = (pages.max_slots() as usize).div_ceil(RUN);
    (p.n_rows as usize).min(LONGEST_ROWS) * n_runs * of_a_run
}

/// Memory that the parts share.
#[derive(Clone, Copy)]
pub(super) struct Shared {
    first: *mut f32,
    /// States that it holds.
    n_states: usize,
}

impl Shared {
    /// The memory that was prepared for this attention.
    pub fn of(call: &Call, problem: &Problem) -> Option<Shared> {
        let len = shared_len(&problem.params, &problem.pages);
        let first = call.panels.sums(len)?;
        let n_states = len / State::len(problem);
        Some(Shared { first, n_states })
    }
}

/// A row that is attended to by itself.
#[derive(Clone)]
pub(crate) struct Single {
    row: usize,
    keys: Range<usize>,
    /// Its first slot that is another branch's.
    first_hidden: usize,
    /// Its items among those of all singles: the runs of the first KV head, then those of the next.
    items: Range<usize>,
    /// Its states among those of all singles: one for each item, or none if there is one run.
    states: Range<usize>,
}

impl Single {
    /// A row behind another one.
    pub fn after(before: Option<&Single>, row: usize, problem: &Problem) -> Single {
        let seen = problem.seen(row);
        let (first_hidden, keys) = (seen.first_hidden(), seen.keys);
        let n_runs = keys.end.div_ceil(RUN).saturating_sub(keys.start / RUN);
        let n_items = n_runs.max(1) * problem.n_kv_heads;
        let n_states = if n_runs > 1 { n_items } else { 0 };
        let (item, state) = before.map_or((0, 0), |before| (before.items.end, before.states.end));
        Single {
            row,
            keys,
            first_hidden,
            items: item..item + n_items,
            states: state..state + n_states,
        }
    }

    fn n_runs(&self, problem: &Problem) -> usize {
        self.items.len() / problem.n_kv_heads
    }

    /// The keys of a run. All runs but the first begin at a multiple of [`RUN`].
    fn keys_of(&self, run: usize) -> Range<usize> {
        let first = (self.keys.start / RUN + run) * RUN;
        first.max(self.keys.start)..(first + RUN).min(self.keys.end)
    }
}

/// All rows of a dispatch that are attended to by themselves.
pub(super) struct All<'a, 'p> {
    pub problem: &'a Problem<'a>,
    pub singles: &'a [Single],
    pub part: &'a mut Part<'p>,
    pub shared: Shared,
}

/// Attends to all rows.
#[inline(always)]
pub(super) fn run<L: Lanes, W: Way>(all: All) {
    let All {
        problem,
        mut singles,
        part,
        shared,
    } = all;
    while let Some(first) = singles.first() {
        let room = first.states.start + shared.n_states;
        let (singles_now, rest) =
            singles.split_at(singles.partition_point(|single| single.states.end <= room));
        let round = Round {
            problem,
            singles: singles_now,
            shared,
        };
        round.run::<L, W>(part);
        singles = rest;
        if !rest.is_empty() {
            // The states are used again.
            part.wait();
        }
    }
}

/// What a thread has prepared.
struct Prepared<K> {
    /// The row and the KV head whose queries are.
    queries: Option<(usize, usize)>,
    /// What it keeps for the way.
    kept: K,
}

/// Rows whose states the shared memory holds at once.
struct Round<'a> {
    problem: &'a Problem<'a>,
    /// At least one.
    singles: &'a [Single],
    shared: Shared,
}

impl Round<'_> {
    #[inline(always)]
    fn run<L: Lanes, W: Way>(&self, part: &mut Part) {
        let (first, last) = (&self.singles[0], &self.singles[self.singles.len() - 1]);
        let mut pieces = part.divide(last.items.end - first.items.start);
        let mut prepared = Prepared {
            queries: None,
            kept: std::mem::take(part.kept.get::<W::Kept>()),
        };
        while let Some(items) = part.take(&mut pieces) {
            for item in items {
                let item = first.items.start + item;
                // SAFETY: `own`: each item belongs to one part.
                unsafe { self.attend::<L, W>(item, part, &mut prepared) };
            }
        }
        *part.kept.get() = prepared.kept;
        if last.states.end == first.states.start {
            return;
        }
        part.wait();
        // Long rows have more to put together: neighbours are heads of different rows.
        let n_rows = self.singles.len();
        for at in part.range(n_rows * self.problem.group * self.problem.n_kv_heads) {
            let single = &self.singles[at % n_rows];
            if !single.states.is_empty() {
                // SAFETY: `own`: all runs have ended, and each head of a row is one part's.
                unsafe { self.merge::<L>(single, at / n_rows) };
            }
        }
    }

    /// Where the state of an item of a row lies.
    fn state(&self, single: &Single, item: usize) -> *mut f32 {
        let before = single.states.start - self.singles[0].states.start;
        let at = before + item - single.items.start;
        (self.shared.first).wrapping_add(at * State::len(self.problem))
    }

    /// Attends to one run of one KV head. If there is no other run, the output is stored.
    ///
    /// # Safety
    /// `own`: nobody else has this item.
    #[inline(always)]
    unsafe fn attend<L: Lanes, W: Way>(
        &self,
        item: usize,
        part: &mut Part,
        prepared: &mut Prepared<W::Kept>,
    ) {
        let problem = self.problem;
        let at = self
            .singles
            .partition_point(|single| single.items.end <= item);
        let single = &self.singles[at];
        let n_runs = single.n_runs(problem);
        let (kv_head, run) = (
            (item - single.items.start) / n_runs,
            (item - single.items.start) % n_runs,
        );
        let len = State::len(problem);
        // What comes behind the state begins at a line of the cache.
        let own_len = len.next_multiple_of(16);
        let memory = part.scratch.take::<f32>(own_len + Scratch::len(problem));
        let (own, memory) = memory.split_at_mut(own_len);
        let state = match n_runs {
            1 => &mut own[..len],
            // SAFETY: `own`: the item's place is within the shared memory, and nobody else's.
            _ => unsafe { std::slice::from_raw_parts_mut(self.state(single, item), len) },
        };
        let mut state = State::of(problem, state);
        let keys = Keys {
            row: single.row,
            kv_head,
            keys: single.keys_of(run),
            end: single.keys.end,
            first_hidden: single.first_hidden,
        };
        let scratch = &mut Scratch::of(problem, memory);
        let Prepared { queries, kept } = prepared;
        if queries.replace((single.row, kv_head)) != Some((single.row, kv_head)) {
            W::prepare::<L>(&keys, problem, scratch, kept);
        }
        W::attend::<L>(&keys, problem, &mut state, scratch, kept);
        if n_runs > 1 {
            return;
        }
        for g in 0..problem.group {
            let sum = &state.sums[g * problem.head_dim..][..problem.head_dim];
            let head = kv_head * problem.group + g;
            // SAFETY: `own`: the outputs of a KV head with one run are those of its item.
            unsafe {
                let weight = (state.weights[g], state.peaks[g]);
                problem.finish((single.row, head), sum, weight);
            }
        }
    }

    /// Puts the sums of all runs of a row for one head together and stores the output.
    ///
    /// # Safety
    /// `own`: all runs have ended, and the output belongs to this part.
    #[inline(always)]
    unsafe fn merge<L: Lanes>(&self, single: &Single, head: usize) {
        let problem = self.problem;
        let (len, head_dim, group) = (State::len(problem), problem.head_dim, problem.group);
        let (kv_head, g) = (head / group, head % group);
        let n_runs = single.n_runs(problem);
        let first = single.items.start + kv_head * n_runs;
        let state = |run: usize| {
            // SAFETY: `own`: nobody writes there any more.
            unsafe { std::slice::from_raw_parts(self.state(single, first + run), len) }
        };
        let peak_of = |run: usize| state(run)[group * head_dim + g];
        let peak = (0..n_runs).map(peak_of).fold(LOWEST, f32::max);
        let mut weight = 0.0;
        let total = &mut [0.0; MAX_HEAD_DIM][..head_dim];
        for run in 0..n_runs {
            let sums = state(run)[g * head_dim..].chunks_exact(L::N);
            // SAFETY: passes on `own`; a head is whole vectors.
            unsafe {
                let factor = exp(L::splat(peak_of(run) - peak));
                weight += factor.largest() * state(run)[group * (head_dim + 1) + g];
                for (total, sum) in total.chunks_exact_mut(L::N).zip(sums) {
                    let before = L::load(total.as_ptr());
                    factor
                        .fma(L::load(sum.as_ptr()), before)
                        .store(total.as_mut_ptr());
                }
            }
        }
        // SAFETY: passes on `own`.
        unsafe { problem.finish((single.row, head), total, (weight, peak)) };
    }
}
