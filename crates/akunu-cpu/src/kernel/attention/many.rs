//! Attention of prompts, block by block.
//!
//! A job is a block of queries of a prompt with all heads of one KV head; its *rows* are (query, head). For each
//! block of keys, with `Qᵗ` (head_dim, rows) made once for the job:
//!
//! 1. `Sᵗ = K Qᵗ`, (keys, rows): the rows are the lanes of the vectors, so that
//! 2. `m' = max(m, S)`, `P = exp(S - m')` and the sums of weights need no step across lanes,
//! 3. `O = O * exp(m - m') + P V`.
//!
//! Parts take jobs as they can, the longest first: later queries of a prompt see more keys.

#[cfg(target_arch = "x86_64")]
mod tiled;

use std::ops::Range;

use akunu_kernels::kernel::pages::SlotAt;

use super::blocks::{BLOCK, blocks};
use super::problem::Problem;
use super::product::tile_columns;
use super::work::{Shape, Work};
#[cfg(target_arch = "x86_64")]
use crate::isa::Isa;
use crate::isa::Level;
use crate::kernel::stored::Slot;
use crate::part::Part;
use crate::simd::Lanes;

/// Rows of a job, at most about: what fits the second cache.
const JOB_ROWS: usize = 128;
/// Queries of a job, at most: more would see too many keys in vain.
const MAX_QUERIES: usize = 64;
/// Queries of a job are not divided further than this.
const MIN_QUERIES: usize = 8;
/// As many jobs can be shared evenly by any usual number of threads.
const ENOUGH_JOBS: usize = 64;

/// Neighbouring rows of one sequence.
pub(crate) struct Prompt {
    rows: Range<usize>,
    queries_per_job: usize,
    /// Its jobs among those of all prompts.
    jobs: Range<usize>,
}

impl Prompt {
    /// Some rows behind those of another prompt.
    pub fn after(before: Option<&Prompt>, rows: Range<usize>, problem: &Problem) -> Prompt {
        let queries_per_job = queries_per_job(rows.len(), problem);
        let n_jobs = rows.len().div_ceil(queries_per_job) * problem.n_kv_heads;
        let first = before.map_or(0, |before| before.jobs.end);
        Prompt {
            rows,
            queries_per_job,
            jobs: first..first + n_jobs,
        }
    }

    /// One of its jobs, the last queries first.
    fn job<'a>(&self, at: usize, problem: &'a Problem) -> Job<'a> {
        let from_last = self.jobs.end - 1 - at;
        let (block, kv_head) = (
            from_last / problem.n_kv_heads,
            from_last % problem.n_kv_heads,
        );
        let first = self.rows.start + block * self.queries_per_job;
        Job {
            problem,
            sequence: problem.rows[first].sequence,
            kv_head,
            first,
            n_queries: self.queries_per_job.min(self.rows.end - first),
        }
    }
}

/// All prompts.
#[inline(always)]
pub(super) fn run<L: Lanes>(
    problem: &Problem,
    prompts: &[Prompt],
    part: &mut Part,
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(unused_variables, reason = "only AMX has tiles")
    )]
    level: Level,
) {
    let Some(last) = prompts.last() else {
        return;
    };
    let mut jobs = part.divide(last.jobs.end);
    while let Some(piece) = part.take(&mut jobs) {
        for at in piece {
            let prompt = prompts.partition_point(|prompt| prompt.jobs.end <= at);
            let job = prompts[prompt].job(at, problem);
            #[cfg(target_arch = "x86_64")]
            // Only vectors of AVX-512 have 16 floats: for others the tiles are not compiled.
            if const { L::N == 16 } && level.isa() == Isa::Amx && job.fits_tiles() {
                let memory = part.scratch.take(job.room_in_tiles());
                // SAFETY: `level`: compared; `own`: each job has its own rows of the output; `reach`: so much was taken, and
                // scratch memory begins at a cache line.
                unsafe { job.run_in_tiles::<L>(memory) };
                continue;
            }
            let memory = part.scratch.take(job.shape().room::<L>());
            // SAFETY: `own`: each job has its own rows of the output.
            unsafe { job.run::<L>(memory) };
        }
    }
}

/// A power of two, which does not depend on the number of threads: nor does the result then.
fn queries_per_job(n_queries: usize, problem: &Problem) -> usize {
    let most = (JOB_ROWS / problem.group).clamp(1, MAX_QUERIES);
    let mut block = 1 << most.ilog2();
    let n_jobs = |block| n_queries.div_ceil(block) * problem.n_kv_heads;
    while block > MIN_QUERIES && n_jobs(block) < ENOUGH_JOBS {
        block /= 2;
    }
    block
}

/// A block of queries of the heads that share one KV head.
struct Job<'a> {
    problem: &'a Problem<'a>,
    sequence: u32,
    kv_head: usize,
    /// The first row.
    first: usize,
    n_queries: usize,
}

impl Job<'_> {
    fn shape(&self) -> Shape {
        Shape {
            n_rows: self.n_queries * self.problem.group,
            head_dim: self.problem.head_dim,
        }
    }

    /// # Safety
    /// `own`: the rows of the output belong to this part.
    #[inline(always)]
    unsafe fn run<L: Lanes>(&self, memory: &mut [f32]) {
        let problem = self.problem;
        let mut work = self.shape().work::<L>(memory);
        work.start::<L>(problem.params.scale, |row| {
            let (query, head) = self.query_of(row);
            &problem.q[problem.query_at(query, head)..][..problem.head_dim]
        });
        for keys in blocks(self.keys()) {
            self.attend::<L>(&mut work, keys);
        }
        for row in 0..self.n_queries * problem.group {
            let (query, head) = self.query_of(row);
            let (sum, weight) = work.sum_of(row);
            let weight = (weight, work.peak_of(row));
            // SAFETY: passes on `own`.
            unsafe { problem.finish((query, head), sum, weight) };
        }
    }

    /// The row of the dispatch and the head that a row of the matrices is.
    fn query_of(&self, row: usize) -> (usize, usize) {
        let group = self.problem.group;
        (self.first + row / group, self.kv_head * group + row % group)
    }

    /// From the first key that some query sees to the last.
    fn keys(&self) -> Range<usize> {
        let queries = self.first..self.first + self.n_queries;
        let ranges = queries.map(|query| self.problem.seen(query).keys);
        let seen = ranges.filter(|keys| !keys.is_empty());
        let joined = seen.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end));
        joined.unwrap_or(0..0)
    }

    /// Where each key of a block lies, and its value. Behind the last key stands the last one again.
    fn keys_at(&self, keys: &Range<usize>) -> [SlotAt; BLOCK] {
        // Rows that do not see all slots before them have a job of their own.
        let seen = self.problem.seen(self.first);
        std::array::from_fn(|i| {
            let key = (keys.start + i).min(keys.end - 1);
            let slot = if self.n_queries == 1 {
                seen.slot(key)
            } else {
                key
            };
            self.problem.key_at(self.sequence, self.kv_head, slot)
        })
    }

    /// Attends to a block of keys.
    #[inline(always)]
    fn attend<L: Lanes>(&self, work: &mut Work, keys: Range<usize>) {
        let n = keys.len();
        self.load::<L>(work, &keys);
        work.score::<L>(None, n);
        self.problem.cap::<L>(work.scores(n));
        let rows = work.rows;
        self.hide(work.scores(n), keys, rows);
        work.sum::<L>(None, n);
    }

    /// Widens the keys and values of a block. The columns of values behind the head are 0.
    #[inline(always)]
    fn load<L: Lanes>(&self, work: &mut Work, keys: &Range<usize>) {
        let (problem, width) = (self.problem, tile_columns::<L>());
        let head_dim = problem.head_dim;
        let keys_at = self.keys_at(keys);
        for (i, &at) in keys_at[..keys.len()].iter().enumerate() {
            let k = &mut work.k[i * head_dim..][..head_dim];
            let format = problem.pages.format;
            Slot::of(&problem.pages, problem.k, at).widen::<L>(format, 0, k);
            let value = Slot::of(&problem.pages, problem.v, at);
            let panels = work.v.chunks_exact_mut(BLOCK * width);
            for (panel, d) in panels.zip((0..head_dim).step_by(width)) {
                let row = &mut panel[i * width..][..width];
                let (row, rest) = row.split_at_mut(width.min(head_dim - d));
                value.widen::<L>(format, d, row);
                rest.fill(0.0);
            }
        }
    }

    /// Hides the keys of a block that a query does not see.
    fn hide(&self, s: &mut [f32], keys: Range<usize>, rows: usize) {
        let group = self.problem.group;
        for query in 0..self.n_queries {
            let seen = self.problem.seen(self.first + query).keys;
            let in_block = |key: usize| key.clamp(keys.start, keys.end) - keys.start;
            let shown = in_block(seen.start)..in_block(seen.end);
            let hide = |i: usize| {
                s[i * rows + query * group..][..group].fill(f32::NEG_INFINITY);
            };
            (0..shown.start).chain(shown.end..keys.len()).for_each(hide);
        }
    }
}

/// Hides what lies behind the last of `n` keys of a block.
#[cfg(target_arch = "x86_64")]
fn hide_rest(s: &mut [f32], n: usize, rows: usize) {
    s[n * rows..].fill(f32::NEG_INFINITY);
}

/// Multiplies each column, of as many numbers as there are factors, by its factor.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn shrink_columns<L: Lanes>(o: &mut [f32], factors: &[f32]) {
    if factors.iter().all(|&factor| factor == 1.0) {
        return;
    }
    for o in o.chunks_exact_mut(factors.len()) {
        for (o, factors) in o.chunks_exact_mut(L::N).zip(factors.chunks_exact(L::N)) {
            // SAFETY: `reach`: there are `N` of both.
            unsafe {
                let product = L::load(o.as_ptr()).mul(L::load(factors.as_ptr()));
                product.store(o.as_mut_ptr());
            }
        }
    }
}
