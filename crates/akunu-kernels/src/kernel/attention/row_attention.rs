//! `row_attention_f32`, `row_attention_bias_f32` and `cross_attention_f16`: attention of rows over rows of two matrices.
//!
//! `O[r][h] = Σ_k softmax_k(scale * Q[r][h] · K[k][h / group] + bias[h][r - k]) V[k][h / group]`, where k runs over
//!
//! * `row_attention_f32`, without `n_keys`: the rows of the text that r is of. Row r is number `position` of `length`
//!   rows, so these are the rows `r - position .. r - position + length`. Texts lie one after the other, without a gap:
//!   nothing is padded, and every row sees its own text and nothing else; with a `reach`, of its own text the rows that
//!   are not further away than this. Keys and values are f32, as the products made them;
//! * `row_attention_bias_f32`: the same rows, and only here there is a bias. It has an entry for each distance from
//!   `-bias_reach` to `bias_reach`; those beyond have the first or the last one;
//! * `cross_attention_f16`, with `n_keys`: the rows `sequence * n_keys .. (sequence + 1) * n_keys`, the positions of an
//!   encoder, which the rows of a decoder look at. Every token reads all of them again, so they are halves.
//!
//! An idle row gives zeros. The host has proven that the rows of every text are there
//! ([`RowTable::check_texts`](akunu_program::RowTable::check_texts)).

use std::ops::Range;

use akunu_types::params::{Row, RowAttentionParams};
use half::f16;

use super::MAX_HEAD_DIM;
use crate::case::{Case, Rng};
use crate::chip::SIMD_WIDTH;
use crate::cost::{Work, multiply_adds};
use crate::extent::product;
use crate::table::{Args, BufferSet, Family, KernelRow, Launch, buffers};

buffers! {
    /// Of rows over rows.
    pub struct Buffers, Slices(p: RowAttentionParams at 4) {
        Q: read f32 = [p.n_rows, p.n_heads, p.head_dim],
        K: read f32 = keys(&p),
        V: read f32 = keys(&p),
        O: write f32 = [p.n_rows, p.n_heads, p.head_dim],
        rows: read Row = [p.n_rows],
    }
}

buffers! {
    /// With a bias by distance.
    pub struct BiasedBuffers, BiasedSlices(p: RowAttentionParams at 4) {
        Q: read f32 = [p.n_rows, p.n_heads, p.head_dim],
        K: read f32 = keys(&p),
        V: read f32 = keys(&p),
        O: write f32 = [p.n_rows, p.n_heads, p.head_dim],
        rows: read Row = [p.n_rows],
        bias: read f32 = [p.n_heads, n_entries(&p)],
    }
}

buffers! {
    /// Of rows over what an encoder left.
    pub struct CrossBuffers, CrossSlices(p: RowAttentionParams at 4) {
        Q: read f32 = [p.n_rows, p.n_heads, p.head_dim],
        K: read f16 = keys(&p),
        V: read f16 = keys(&p),
        O: write f32 = [p.n_rows, p.n_heads, p.head_dim],
        rows: read Row = [p.n_rows],
    }
}

impl<T> BiasedBuffers<T> {
    /// Those that all have.
    pub fn without_bias(self) -> Buffers<T> {
        let BiasedBuffers {
            Q,
            K,
            V,
            O,
            rows,
            bias: _,
        } = self;
        Buffers { Q, K, V, O, rows }
    }
}

impl<T> From<CrossBuffers<T>> for Buffers<T> {
    fn from(CrossBuffers { Q, K, V, O, rows }: CrossBuffers<T>) -> Buffers<T> {
        Buffers { Q, K, V, O, rows }
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("row_attention_f32", ""),
    twin: |t| {
        let p = t.params();
        let Slices { Q, K, V, O, rows } = Slices::of(t);
        attend(&p, (Q, K, V), rows, |_, _| 0.0, O);
    },
    cases: |_| cases_of_texts(),
    ..row::<Buffers<()>>()
};

/// The row of the kernel with a bias by distance.
pub const BIASED: KernelRow = KernelRow {
    name: ("row_attention_bias_f32", ""),
    twin: |t| {
        let p = t.params();
        let BiasedSlices {
            Q,
            K,
            V,
            O,
            rows,
            bias,
        } = BiasedSlices::of(t);
        let bias = |head, distance| bias[bias_at(&p, head, distance)];
        attend(&p, (Q, K, V), rows, bias, O);
    },
    cases: |_| cases_of_distances(),
    ..row::<BiasedBuffers<()>>()
};

/// The row of the kernel that looks at an encoder.
pub const CROSS: KernelRow = KernelRow {
    name: ("cross_attention_f16", ""),
    twin: |t| {
        let p = t.params();
        let CrossSlices { Q, K, V, O, rows } = CrossSlices::of(t);
        attend(&p, (Q, K, V), rows, |_, _| 0.0, O);
    },
    cases: |_| cases_across(),
    ..row::<CrossBuffers<()>>()
};

const fn row<B: BufferSet>() -> KernelRow {
    KernelRow {
        family: Family::Attention,
        source: "row_attention",
        launch: |args, _| launch(args),
        work,
        ..KernelRow::of::<B>()
    }
}

/// The rows of K and V that belong to row number `at`: its own text, or its sequence.
pub fn own(p: &RowAttentionParams, row: &Row, at: usize) -> Range<usize> {
    if !row.is_active() {
        return 0..0;
    }
    let (first, n) = match p.n_keys {
        0 => (at - row.position as usize, row.length as usize),
        n => (row.sequence as usize * n as usize, n as usize),
    };
    first..first + n
}

/// Those of [`own`] that row number `at` sees: all, or those within its reach.
pub fn seen(p: &RowAttentionParams, row: &Row, at: usize) -> Range<usize> {
    let own = own(p, row, at);
    match p.reach as usize {
        0 => own,
        _ if own.is_empty() => own,
        reach => own.start.max(at.saturating_sub(reach))..own.end.min(at + reach + 1),
    }
}

/// Where the bias of a head for a query that lies `distance` rows behind its key stands.
pub fn bias_at(p: &RowAttentionParams, head: usize, distance: isize) -> usize {
    let reach = p.bias_reach as isize;
    let entry = distance.clamp(-reach, reach) + reach;
    head * n_entries(p) as usize + entry as usize
}

/// Entries of a head's bias.
fn n_entries(p: &RowAttentionParams) -> u32 {
    p.bias_reach.saturating_mul(2).saturating_add(1)
}

/// Elements of K and of V.
fn keys(p: &RowAttentionParams) -> usize {
    let [texts, rows] = n_key_rows(p);
    product(&[texts, rows, p.n_kv_heads, p.head_dim])
}

/// Rows that K and V have.
fn n_key_rows(p: &RowAttentionParams) -> [u32; 2] {
    match p.n_keys {
        0 => [1, p.n_rows],
        n => [p.n_sequences, n],
    }
}

/// Heads that are no whole vectors of 4, or too large, get an empty grid, which the plan check refuses.
fn launch(args: &Args) -> Launch {
    let p: RowAttentionParams = args.params();
    let is_supported = (4..=MAX_HEAD_DIM).contains(&p.head_dim)
        && p.head_dim.is_multiple_of(4)
        && p.n_kv_heads != 0
        && p.n_heads.is_multiple_of(p.n_kv_heads);
    let n_heads = if is_supported { p.n_heads } else { 0 };
    Launch::new([p.n_rows, n_heads, 1], [SIMD_WIDTH, 1, 1])
}

/// Two products of a head's length for each key that a row sees: at most all rows, which is one long text.
fn work(args: &Args, once: Work) -> Work {
    let p: RowAttentionParams = args.params();
    let n_keys = n_key_rows(&p)[1];
    once.with_flops(2 * multiply_adds(&[p.n_rows, n_keys, p.n_heads, p.head_dim]))
}

/// `bias` gives what is added to the score of a head for a query that lies so far behind its key.
fn attend<T: Copy + Into<f32>>(
    p: &RowAttentionParams,
    (q, k, v): (&[f32], &[T], &[T]),
    rows: &[Row],
    bias: impl Fn(usize, isize) -> f32,
    out: &mut [f32],
) {
    let (head_dim, n_heads) = (p.head_dim as usize, p.n_heads as usize);
    let (group, stride) = (
        (p.n_heads / p.n_kv_heads) as usize,
        p.n_kv_heads as usize * head_dim,
    );
    let out = out.chunks_exact_mut(head_dim);
    for ((at, out), q) in out.enumerate().zip(q.chunks_exact(head_dim)) {
        let (row, head) = (at / n_heads, at % n_heads);
        let of_key = |key: usize| key * stride + head / group * head_dim;
        let keys = seen(p, &rows[row], row);
        let score = |key: usize| {
            let distance = row as isize - key as isize;
            p.scale * dot(q, &k[of_key(key)..][..head_dim]) + bias(head, distance)
        };
        let scores: Vec<f32> = keys.clone().map(score).collect();
        let peak = scores.iter().copied().fold(f32::MIN, f32::max);
        let sum: f32 = scores.iter().map(|score| (score - peak).exp()).sum();
        out.fill(0.0);
        for (key, score) in keys.zip(scores) {
            let weight = (score - peak).exp() / sum;
            for (out, v) in out.iter_mut().zip(&v[of_key(key)..][..head_dim]) {
                *out += weight * (*v).into();
            }
        }
    }
}

fn dot<T: Copy + Into<f32>>(a: &[f32], b: &[T]) -> f32 {
    a.iter().zip(b).map(|(a, &b)| a * b.into()).sum()
}

/// Heads, their size, and what the rows are.
struct Setting<'a> {
    label: &'a str,
    heads: (u32, u32),
    head_dim: u32,
    keys: Keys<'a>,
}

enum Keys<'a> {
    /// Texts of these lengths.
    Texts(&'a [u32]),
    /// Texts of these lengths, whose rows see others that are so far away at most.
    Nearby(&'a [u32], u32),
    /// As many rows of each of these sequences, and the keys of a sequence.
    Across(&'a [u32], u32),
}

#[rustfmt::skip]
fn cases_of_texts() -> Vec<Case> {
    use Keys::{Nearby, Texts};
    let settings = [
        Setting { label: "one token", heads: (1, 1), head_dim: 4, keys: Texts(&[1]) },
        Setting { label: "short and long texts", heads: (2, 2), head_dim: 32, keys: Texts(&[3, 1, 70, 5]) },
        Setting { label: "an odd head", heads: (3, 3), head_dim: 20, keys: Texts(&[33, 32]) },
        Setting { label: "shared keys", heads: (6, 2), head_dim: 64, keys: Texts(&[40, 9]) },
        Setting { label: "the largest head", heads: (1, 1), head_dim: 256, keys: Texts(&[37]) },
        Setting { label: "neighbours only", heads: (2, 2), head_dim: 32, keys: Nearby(&[3, 70, 1, 9], 1) },
        Setting { label: "a window", heads: (4, 2), head_dim: 64, keys: Nearby(&[5, 200, 17], 16) },
        Setting { label: "a window beyond the text", heads: (1, 1), head_dim: 20, keys: Nearby(&[33, 2], u32::MAX) },
    ];
    settings.iter().map(|setting| case(setting, |k| k)).collect()
}

/// Distances within the reach of the bias, just beyond it and far beyond.
#[rustfmt::skip]
fn cases_of_distances() -> Vec<Case> {
    use Keys::{Nearby, Texts};
    let settings = [
        (0, Setting { label: "one bias for all", heads: (2, 2), head_dim: 32, keys: Texts(&[9, 3]) }),
        (4, Setting { label: "short and long texts", heads: (3, 3), head_dim: 20, keys: Texts(&[1, 5, 6, 70, 2]) }),
        (16, Setting { label: "shared keys", heads: (6, 2), head_dim: 64, keys: Texts(&[40, 9]) }),
        (8, Setting { label: "a window", heads: (2, 2), head_dim: 32, keys: Nearby(&[3, 150], 20) }),
        (128, Setting { label: "the largest head", heads: (1, 1), head_dim: 256, keys: Texts(&[137]) }),
    ];
    settings.iter().map(|(bias_reach, setting)| biased_case(setting, *bias_reach)).collect()
}

#[rustfmt::skip]
fn cases_across() -> Vec<Case> {
    use Keys::Across;
    let settings = [
        Setting { label: "across, single rows", heads: (2, 2), head_dim: 64, keys: Across(&[1, 1, 1], 75) },
        Setting { label: "across, a prompt and others", heads: (4, 2), head_dim: 36, keys: Across(&[1, 9, 0, 2], 41) },
        Setting { label: "across, the smallest head", heads: (3, 3), head_dim: 4, keys: Across(&[2, 5], 1) },
        Setting { label: "across, the largest head", heads: (2, 1), head_dim: 256, keys: Across(&[5, 1], 64) },
    ];
    settings.iter().map(|setting| case(setting, f16::from_f32)).collect()
}

/// A case with a bias, as large as the scores.
fn biased_case(s: &Setting, bias_reach: u32) -> Case {
    let n_entries = (s.heads.0 * (2 * bias_reach + 1)) as usize;
    let bias = Rng::new(11).floats(n_entries, 3.0);
    case_of(s, bias_reach, |k| k).bind(&bias)
}

fn case<T: bytemuck::Pod>(s: &Setting, store: fn(f32) -> T) -> Case {
    case_of(s, 0, store)
}

/// Sums of at most 200 weights and values in another order, about 1e-6 relative, and exponentials good to 1e-6. The last
/// row is idle and names what there is not. `store` makes a key or a value what the kernel reads.
fn case_of<T: bytemuck::Pod>(s: &Setting, bias_reach: u32, store: fn(f32) -> T) -> Case {
    let mut rows = Vec::new();
    let mut reach = 0;
    let (n_sequences, n_keys) = match s.keys {
        Keys::Texts(lengths) | Keys::Nearby(lengths, _) => {
            for (&length, text) in lengths.iter().zip(0..) {
                rows.extend((0..length).map(|at| Row::of_text(text, at, length)));
            }
            if let Keys::Nearby(_, distance) = s.keys {
                reach = distance;
            }
            (0, 0)
        }
        Keys::Across(counts, n_keys) => {
            for (&count, sequence) in counts.iter().zip(0..) {
                rows.extend((0..count).map(|at| Row::at(sequence, 7 + at)));
            }
            (counts.len() as u32, n_keys)
        }
    };
    rows.push(Row {
        flags: 0,
        ..Row::at(u32::MAX, u32::MAX - 1)
    });
    let params = RowAttentionParams {
        n_rows: rows.len() as u32,
        n_heads: s.heads.0,
        n_kv_heads: s.heads.1,
        head_dim: s.head_dim,
        n_keys,
        n_sequences,
        scale: 1.0 / (s.head_dim as f32).sqrt(),
        reach,
        bias_reach,
        ..Default::default()
    };
    let mut rng = Rng::new(u64::from(s.head_dim));
    let n_queries = rows.len() * (s.heads.0 * s.head_dim) as usize;
    let [texts, key_rows] = n_key_rows(&params);
    let n_numbers = (texts * key_rows * s.heads.1 * s.head_dim) as usize;
    let q = rng.floats(n_queries, 3.0);
    let mut stored = |largest| -> Vec<T> {
        let numbers = rng.floats(n_numbers, largest);
        numbers.into_iter().map(store).collect()
    };
    Case::new(s.label, &params, 1e-11)
        .bind(&q)
        .bind(&stored(3.0))
        .bind(&stored(1.0))
        .bind(&vec![f32::NAN; n_queries])
        .bind(&rows)
}
