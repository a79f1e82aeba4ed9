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

#[cfg(feature = "testing")]
pub(crate) mod cases;

use std::ops::Range;

use akunu_types::params::{Row, RowAttentionParams};
use half::f16;

use super::MAX_HEAD_DIM;
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
    #[cfg(feature = "testing")]
    cases: |_| cases::of_texts(),
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
    #[cfg(feature = "testing")]
    cases: |_| cases::of_distances(),
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
    #[cfg(feature = "testing")]
    cases: |_| cases::across(),
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
