//! Attention of rows over rows of two matrices: encoders (f32), and decoders that look at an encoder (f16).
//!
//! Neighbouring rows that see the same keys, the rows of a text, are a *group*. A job is a block of queries of a group
//! with all heads of one KV head, computed as [`super::many`] does it: scores, weights and sums are products of small
//! matrices. All jobs of a KV head come one after the other. The first one lays its keys and values out as floats, values
//! in panels ([`packed`]): where they lie, the rows of a head are so far apart that they would share a few sets of a cache.
//!
//! A group of fewer than [`MIN_GROUP`] rows is done row by row ([`single`]): what a decoder asks of its encoder for its
//! next token is one row, and a product would fill its lanes with nothing.
//!
//! Where rows see only those nearby, a group is still a whole text: a job goes over the blocks of keys that some query of
//! it sees, and hides the others from each query. A bias is added to the scores of a block before they become weights.

mod packed;
mod single;

use std::marker::PhantomData;
use std::ops::Range;

use akunu_kernels::KernelId;
use akunu_kernels::kernel::attention::row_attention::{self, bias_at, own, seen};
use akunu_types::params::{Row, RowAttentionParams};

use super::blocks::BLOCK;
use super::product::Strided;
use super::work::Shape;
use crate::body::Body;
use crate::call::Call;
use crate::number::Number;
use crate::part::Part;
use crate::place::Place;
use crate::simd::Lanes;

/// From as many rows on that see the same keys they are multiplied together.
const MIN_GROUP: usize = 4;
/// Queries of a job, at most: what fits the second cache.
const MAX_QUERIES: usize = 64;

/// The kernel, for keys and values of `T`, with or without a bias by distance.
pub(crate) struct RowAttention<T>(PhantomData<T>);

impl<T: Number> Body for RowAttention<T> {
    #[inline(always)]
    fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let problem = Problem::<T>::of(call);
        let mut groups = std::mem::take(part.kept.get::<Groups>());
        groups.fill(&problem, part.count);
        let n_jobs = groups.0.last().map_or(0, |group| group.jobs.end);
        let mut jobs = part.divide(n_jobs);
        // The group and the KV head whose keys and values are laid out.
        let mut packed = None;
        while let Some(piece) = part.take(&mut jobs) {
            for at in piece {
                let group = groups.0.partition_point(|group| group.jobs.end <= at);
                let job = groups.0[group].job(at, &problem);
                // SAFETY: `own`: each job has its own rows and heads of the output.
                unsafe {
                    if job.n_queries < MIN_GROUP {
                        packed = None;
                        job.run_singly::<L>(part.scratch);
                        continue;
                    }
                    let room = job.packed_room::<L>();
                    let memory = part.scratch.take(room + job.shape().room::<L>());
                    let (keys, memory) = memory.split_at_mut(room);
                    let wanted = Some((group, job.kv_heads.start));
                    if packed != wanted {
                        job.pack::<L>(keys);
                        packed = wanted;
                    }
                    job.run::<L>(keys, memory);
                }
            }
        }
        *part.kept.get() = groups;
    }
}

/// What is to be computed.
struct Problem<'a, T> {
    params: RowAttentionParams,
    /// Query heads that share a KV head.
    group: usize,
    head_dim: usize,
    /// Numbers of a row of k and of v.
    stride: usize,
    rows: &'a [Row],
    q: &'a [f32],
    k: &'a [T],
    v: &'a [T],
    o: Place<'a>,
    /// What is added to scores, (n_heads, distances).
    bias: Option<&'a [f32]>,
}

impl<'a, T: Number> Problem<'a, T> {
    fn of(call: &Call<'a>) -> Problem<'a, T> {
        let p: RowAttentionParams = call.params();
        let mut bias = None;
        let row_attention::Buffers {
            Q: q,
            K: k,
            V: v,
            O: o,
            rows,
        } = match call.kernel {
            KernelId::RowAttentionBias => {
                let own: row_attention::BiasedBuffers<_> = call.buffers();
                let n_entries = bias_at(&p, p.n_heads as usize, -(p.bias_reach as isize));
                bias = Some(own.bias.read(n_entries));
                own.without_bias()
            }
            KernelId::CrossAttention => call.buffers::<row_attention::CrossBuffers<_>>().into(),
            _ => call.buffers(),
        };
        let (n_rows, head_dim) = (p.n_rows as usize, p.head_dim as usize);
        let stride = p.n_kv_heads as usize * head_dim;
        let n_keys = match p.n_keys {
            0 => n_rows,
            n => p.n_sequences as usize * n as usize,
        };
        Problem {
            group: (p.n_heads / p.n_kv_heads) as usize,
            head_dim,
            stride,
            rows: rows.read(n_rows),
            q: q.read(n_rows * p.n_heads as usize * head_dim),
            k: k.read(n_keys * stride),
            v: v.read(n_keys * stride),
            o,
            bias,
            params: p,
        }
    }

    /// The rows of k and v that a row sees.
    fn seen(&self, row: usize) -> Range<usize> {
        seen(&self.params, &self.rows[row], row)
    }

    /// What is added to the score of a head of a row for a key.
    fn bias(&self, row: usize, head: usize, key: usize) -> f32 {
        let distance = row as isize - key as isize;
        let entry = bias_at(&self.params, head, distance);
        self.bias.map_or(0.0, |bias| bias[entry])
    }

    /// Where a query of a head begins, and its output.
    fn query_at(&self, row: usize, head: usize) -> usize {
        (row * self.params.n_heads as usize + head) * self.head_dim
    }

    /// The output of a head of a row.
    ///
    /// # Safety
    /// `own`: it belongs to this part.
    unsafe fn output(&self, row: usize, head: usize) -> &'a mut [f32] {
        // SAFETY: passes on `own`.
        unsafe { self.o.write(self.query_at(row, head), self.head_dim) }
    }
}

/// Neighbouring rows of one text, or of one sequence.
struct Group {
    rows: Range<usize>,
    /// All keys of the text or the sequence.
    keys: Range<usize>,
    queries_per_job: usize,
    kv_heads_per_job: usize,
    /// Its jobs among those of all groups.
    jobs: Range<usize>,
}

/// All groups of a dispatch. Their memory is used again for the next one.
#[derive(Default)]
struct Groups(Vec<Group>);

impl Groups {
    fn fill<T: Number>(&mut self, problem: &Problem<T>, n_parts: usize) {
        self.0.clear();
        let n_kv_heads = problem.params.n_kv_heads as usize;
        let mut first = 0;
        while first < problem.rows.len() {
            let keys_of = |at: usize| own(&problem.params, &problem.rows[at], at);
            let keys = keys_of(first);
            let mut end = first + 1;
            while end < problem.rows.len() && keys_of(end) == keys {
                end += 1;
            }
            // Heads of a single row lie side by side: a part takes as many of them as it can.
            let (queries_per_job, kv_heads_per_job) = match end - first {
                ..MIN_GROUP => (1, n_kv_heads.div_ceil(n_parts)),
                n => (n.div_ceil(n.div_ceil(MAX_QUERIES)).max(MIN_GROUP), 1),
            };
            let n_jobs =
                (end - first).div_ceil(queries_per_job) * n_kv_heads.div_ceil(kv_heads_per_job);
            let job = self.0.last().map_or(0, |group| group.jobs.end);
            self.0.push(Group {
                rows: first..end,
                keys,
                queries_per_job,
                kv_heads_per_job,
                jobs: job..job + n_jobs,
            });
            first = end;
        }
    }
}

impl Group {
    fn job<'a, T: Number>(&self, at: usize, problem: &'a Problem<'a, T>) -> Job<'a, T> {
        let (at, n_kv_heads) = (at - self.jobs.start, problem.params.n_kv_heads as usize);
        let jobs_of_queries = self.rows.len().div_ceil(self.queries_per_job);
        let first = self.rows.start + at % jobs_of_queries * self.queries_per_job;
        let kv_head = at / jobs_of_queries * self.kv_heads_per_job;
        Job {
            problem,
            kv_heads: kv_head..n_kv_heads.min(kv_head + self.kv_heads_per_job),
            first,
            n_queries: self.queries_per_job.min(self.rows.end - first),
            keys: self.keys.clone(),
        }
    }
}

/// A block of queries of the heads that share one KV head, or a single query of those of some.
struct Job<'a, T> {
    problem: &'a Problem<'a, T>,
    kv_heads: Range<usize>,
    /// The first row.
    first: usize,
    n_queries: usize,
    /// All keys of the text or the sequence.
    keys: Range<usize>,
}

impl<T: Number> Job<'_, T> {
    fn shape(&self) -> Shape {
        Shape {
            n_rows: self.n_queries * self.problem.group,
            head_dim: self.problem.head_dim,
        }
    }

    /// With keys and values that [`Job::pack`] has laid out.
    ///
    /// # Safety
    /// `own`: the rows of the output belong to this part.
    #[inline(always)]
    unsafe fn run<L: Lanes>(&self, packed: &[f32], memory: &mut [f32]) {
        let problem = self.problem;
        let mut work = self.shape().work::<L>(memory);
        work.start::<L>(problem.params.scale, |row| {
            let (query, head) = self.query_of(row);
            &problem.q[problem.query_at(query, head)..][..problem.head_dim]
        });
        for block in self.blocks() {
            let first = self.keys.start + block * BLOCK;
            let n = BLOCK.min(self.keys.end - first);
            let (keys, values) = self.packed_block::<L>(packed, block);
            let keys = Strided {
                elements: keys,
                row: problem.head_dim,
                col: 1,
            };
            work.score::<L>(Some(keys), n);
            let rows = work.rows;
            self.adjust(work.scores(n), first..first + n, rows);
            work.sum::<L>(Some(values), n);
        }
        for row in 0..self.n_queries * problem.group {
            let (query, head) = self.query_of(row);
            let (sum, weight) = work.sum_of(row);
            let inverse = if weight > 0.0 { 1.0 / weight } else { 0.0 };
            // SAFETY: passes on `own`.
            let out = unsafe { problem.output(query, head) };
            for (out, sum) in out.iter_mut().zip(sum) {
                *out = sum * inverse;
            }
        }
    }

    /// The blocks of keys that some query sees.
    fn blocks(&self) -> Range<usize> {
        let [first, last] = [self.first, self.first + self.n_queries - 1];
        let (start, end) = (self.problem.seen(first).start, self.problem.seen(last).end);
        (start - self.keys.start) / BLOCK..(end - self.keys.start).div_ceil(BLOCK)
    }

    /// Adds the bias to the scores of a block of keys, (keys, rows), and hides the keys that a query does not see.
    fn adjust(&self, scores: &mut [f32], keys: Range<usize>, rows: usize) {
        let problem = self.problem;
        if problem.bias.is_some() {
            for (key, scores) in keys.clone().zip(scores.chunks_exact_mut(rows)) {
                for (row, score) in scores[..self.shape().n_rows].iter_mut().enumerate() {
                    let (query, head) = self.query_of(row);
                    *score += problem.bias(query, head, key);
                }
            }
        }
        if problem.params.reach != 0 {
            let group = problem.group;
            for query in 0..self.n_queries {
                let seen = problem.seen(self.first + query);
                for (key, scores) in keys.clone().zip(scores.chunks_exact_mut(rows)) {
                    if !seen.contains(&key) {
                        scores[query * group..][..group].fill(f32::NEG_INFINITY);
                    }
                }
            }
        }
    }

    /// The row of the dispatch and the head that a row of the matrices is.
    fn query_of(&self, row: usize) -> (usize, usize) {
        let group = self.problem.group;
        (
            self.first + row / group,
            self.kv_heads.start * group + row % group,
        )
    }
}
