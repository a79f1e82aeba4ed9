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
mod state;

use std::ops::Range;

use akunu_kernels::kernel::attention;
use akunu_kernels::kernel::pages::{Pages, SlotAt};
use akunu_types::params::AttentionParams;

use self::block::{Block, Stretch, keys_ahead};
use self::state::State;
use super::blocks::{BLOCK, LOWEST, blocks};
use super::problem::Problem;
use crate::call::Call;
use crate::kernel::stored::Stored;
use crate::part::{Part, Scratch};
use crate::simd::Lanes;

/// The largest head that the kernels of the table take.
const MAX_HEAD_DIM: usize = attention::MAX_HEAD_DIM as usize;

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
    /// Its items among those of all singles: the runs of the first KV head, then those of the next.
    items: Range<usize>,
    /// Its states among those of all singles: one for each item, or none if there is one run.
    states: Range<usize>,
}

impl Single {
    /// A row behind another one.
    pub fn after(before: Option<&Single>, row: usize, problem: &Problem) -> Single {
        let keys = problem.seen(row).keys;
        let n_runs = keys.end.div_ceil(RUN).saturating_sub(keys.start / RUN);
        let n_items = n_runs.max(1) * problem.n_kv_heads;
        let n_states = if n_runs > 1 { n_items } else { 0 };
        let (item, state) = before.map_or((0, 0), |before| (before.items.end, before.states.end));
        Single {
            row,
            keys,
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

/// All rows.
///
/// # Safety
/// The CPU has the instructions of `L`, as for all functions of this file.
#[inline(always)]
pub(super) unsafe fn run<L: Lanes, S: Stored>(
    problem: &Problem,
    mut singles: &[Single],
    part: &mut Part,
    shared: Shared,
) {
    while let Some(first) = singles.first() {
        let room = first.states.start + shared.n_states;
        let (singles_now, rest) =
            singles.split_at(singles.partition_point(|single| single.states.end <= room));
        let round = Round {
            problem,
            singles: singles_now,
            shared,
        };
        // SAFETY: by the caller's promise.
        unsafe { round.run::<L, S>(part) };
        singles = rest;
        if !rest.is_empty() {
            // The states are used again.
            part.wait();
        }
    }
}

/// Rows whose states the shared memory holds at once.
struct Round<'a> {
    problem: &'a Problem<'a>,
    /// At least one.
    singles: &'a [Single],
    shared: Shared,
}

impl Round<'_> {
    /// # Safety
    /// That of [`run`].
    #[inline(always)]
    unsafe fn run<L: Lanes, S: Stored>(&self, part: &mut Part) {
        let (first, last) = (&self.singles[0], &self.singles[self.singles.len() - 1]);
        let mut pieces = part.divide(last.items.end - first.items.start);
        while let Some(items) = part.take(&mut pieces) {
            for item in items {
                // SAFETY: each item belongs to one part.
                unsafe { self.attend::<L, S>(first.items.start + item, part.scratch) };
            }
        }
        if last.states.end == first.states.start {
            return;
        }
        part.wait();
        // Long rows have more to put together: neighbours are heads of different rows.
        let n_rows = self.singles.len();
        for at in part.range(n_rows * self.problem.group * self.problem.n_kv_heads) {
            let single = &self.singles[at % n_rows];
            if !single.states.is_empty() {
                // SAFETY: all runs have ended, and each head of a row is one part's.
                unsafe { self.merge(single, at / n_rows) };
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
    /// That of [`run`], and nobody else has this item.
    #[inline(always)]
    unsafe fn attend<L: Lanes, S: Stored>(&self, item: usize, scratch: &mut Scratch) {
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
        let memory = scratch.take::<f32>(len + room::<S>(problem));
        let (own, memory) = memory.split_at_mut(len);
        let state = match n_runs {
            1 => own,
            // SAFETY: the item's place is within the shared memory, and nobody else's.
            _ => unsafe { std::slice::from_raw_parts_mut(self.state(single, item), len) },
        };
        let mut state = State::of(problem, state);
        let keys = Keys {
            row: single.row,
            kv_head,
            keys: single.keys_of(run),
            end: single.keys.end,
        };
        // SAFETY: by the caller's promise.
        unsafe { keys.attend::<L, S>(problem, &mut state, memory) };
        if n_runs > 1 {
            return;
        }
        for g in 0..problem.group {
            let sum = &state.sums[g * problem.head_dim..][..problem.head_dim];
            let head = kv_head * problem.group + g;
            // SAFETY: the outputs of a KV head with one run are those of its item.
            unsafe { problem.finish(single.row, head, sum, state.weights[g]) };
        }
    }

    /// Puts the sums of all runs of a row for one head together and stores the output.
    ///
    /// # Safety
    /// All runs have ended, and the output belongs to this part.
    unsafe fn merge(&self, single: &Single, head: usize) {
        let problem = self.problem;
        let (len, head_dim, group) = (State::len(problem), problem.head_dim, problem.group);
        let (kv_head, g) = (head / group, head % group);
        let n_runs = single.n_runs(problem);
        let first = single.items.start + kv_head * n_runs;
        let state = |run: usize| {
            // SAFETY: by the caller's promise nobody writes there any more.
            unsafe { std::slice::from_raw_parts(self.state(single, first + run), len) }
        };
        let peak_of = |run: usize| state(run)[group * head_dim + g];
        let peak = (0..n_runs).map(peak_of).fold(LOWEST, f32::max);
        let mut weight = 0.0;
        let total = &mut [0.0; MAX_HEAD_DIM][..head_dim];
        for run in 0..n_runs {
            let factor = (peak_of(run) - peak).exp();
            weight += factor * state(run)[group * (head_dim + 1) + g];
            for (total, sum) in total.iter_mut().zip(&state(run)[g * head_dim..]) {
                *total += factor * sum;
            }
        }
        // SAFETY: by the caller's promise.
        unsafe { problem.finish(single.row, head, total, weight) };
    }
}

/// Most stretches of a block: pages have 32 keys and more.
const MAX_STRETCHES: usize = 2 * BLOCK / 32;

/// Some keys of a row and of one KV head.
struct Keys {
    row: usize,
    kv_head: usize,
    keys: Range<usize>,
    /// Where the keys of the row end.
    end: usize,
}

impl Keys {
    /// Whether slots of other branches lie between the keys of a block.
    fn are_scattered(&self, problem: &Problem, block: &Range<usize>) -> bool {
        block.end > problem.seen(self.row).first_hidden()
    }

    /// The memory that the stretches of a block lie in: the pool, or, for keys that are scattered, room for a block in
    /// which they are put one after the other, and their scales behind them.
    fn pool<'p, S: Stored>(
        &self,
        problem: &Problem,
        pool: &'p [u8],
        block: &Range<usize>,
        room: &'p mut [u8],
    ) -> &'p [u8] {
        if !self.are_scattered(problem, block) {
            return pool;
        }
        let seen = problem.seen(self.row);
        let sequence = problem.rows[self.row].sequence;
        let (row, n_scale_bytes) = (
            problem.head_dim * S::BYTES,
            2 * S::n_scales(problem.head_dim),
        );
        let (numbers, scales) = room.split_at_mut(block.len() * row);
        for (i, key) in block.clone().enumerate() {
            let at = problem.key_at(sequence, self.kv_head, seen.slot(key));
            numbers[i * row..][..row].copy_from_slice(&pool[at.numbers..][..row]);
            scales[i * n_scale_bytes..][..n_scale_bytes]
                .copy_from_slice(&pool[at.scales..][..n_scale_bytes]);
        }
        room
    }

    /// Cuts a block where a page ends, and where what is to be fetched begins to lie in the next page: at most twice in
    /// each 32 keys. The number of stretches comes with them. Keys that are scattered are one stretch in a memory of their
    /// own.
    #[inline(always)]
    fn stretches<S: Stored>(
        &self,
        problem: &Problem,
        block: &Range<usize>,
    ) -> ([Stretch; MAX_STRETCHES], usize) {
        let (shift, row) = (problem.pages.page_shift, problem.head_dim * S::BYTES);
        let sequence = problem.rows[self.row].sequence;
        let (mut stretches, mut n) = ([Stretch::EMPTY; MAX_STRETCHES], 0);
        if self.are_scattered(problem, block) {
            stretches[0] = Stretch {
                n: block.len(),
                at: SlotAt {
                    numbers: 0,
                    scales: block.len() * row,
                },
                ..Stretch::EMPTY
            };
            return (stretches, 1);
        }
        let n_ahead = keys_ahead(row);
        let mut first = block.start;
        while first < block.end {
            let at = problem.key_at(sequence, self.kv_head, first);
            let page_end = ((first >> shift) + 1) << shift;
            let cut = page_end.saturating_sub(n_ahead);
            let (end, ahead) = if first < cut {
                (cut, (n_ahead * row) as isize)
            } else if page_end < self.end {
                let next = problem.key_at(sequence, self.kv_head, page_end);
                let ahead = next.numbers + (first + n_ahead - page_end) * row;
                (page_end, ahead as isize - at.numbers as isize)
            } else {
                (page_end, 0)
            };
            let end = end.min(block.end);
            stretches[n] = Stretch {
                key: first - block.start,
                n: end - first,
                at,
                ahead,
            };
            (first, n) = (end, n + 1);
        }
        (stretches, n)
    }

    /// Attends to all of them, with scratch of [`room`] floats.
    ///
    /// # Safety
    /// That of [`run`].
    #[inline(always)]
    unsafe fn attend<L: Lanes, S: Stored>(
        &self,
        problem: &Problem,
        state: &mut State,
        memory: &mut [f32],
    ) {
        let (group, head_dim) = (problem.group, problem.head_dim);
        let (q, rest) = memory.split_at_mut(group * head_dim);
        let (scores, rest) = rest.split_at_mut(group * BLOCK);
        let (scales, gathered) = rest.split_at_mut(BLOCK * S::n_scales(head_dim));
        let gathered: &mut [u8] = bytemuck::cast_slice_mut(gathered);
        for g in 0..group {
            let at = problem.query_at(self.row, self.kv_head * group + g);
            let scaled = q[g * head_dim..].iter_mut().zip(&problem.q[at..]);
            for (q, x) in scaled.take(head_dim) {
                *q = x * problem.params.scale;
            }
        }
        for in_block in blocks(self.keys.clone()) {
            let block = Block {
                n: in_block.len(),
                group,
                head_dim,
            };
            let (stretches, n) = self.stretches::<S>(problem, &in_block);
            // SAFETY: by the caller's promise; the stretches are in the pages, and in the block.
            unsafe {
                let pool = self.pool::<S>(problem, problem.k, &in_block, gathered);
                for stretch in &stretches[..n] {
                    let k = stretch.of::<L, S>(pool, head_dim, scales);
                    let scores = &mut scores[stretch.key..];
                    block.part(stretch).scores::<L, S>(q, k, scores);
                }
                problem.cap::<L>(scores);
                block.hide_rest(scores);
                block.weigh::<L>(state, scores);
                let pool = self.pool::<S>(problem, problem.v, &in_block, gathered);
                for stretch in &stretches[..n] {
                    let v = stretch.of::<L, S>(pool, head_dim, scales);
                    let weights = &scores[stretch.key..];
                    block.part(stretch).sum::<L, S>(weights, v, state.sums);
                }
            }
        }
    }
}

/// Floats of scratch that [`Keys::attend`] wants.
fn room<S: Stored>(problem: &Problem) -> usize {
    let n_scales = S::n_scales(problem.head_dim);
    let of_a_slot = problem.head_dim * S::BYTES + 2 * n_scales;
    let gathered = (BLOCK * of_a_slot).div_ceil(size_of::<f32>());
    problem.group * (problem.head_dim + BLOCK) + BLOCK * n_scales + gathered
}
