//! The matrices that a block of queries and blocks of keys are multiplied in.
//!
//! ```text
//! s = k qᵀ    weights = softmax(s)    o = o * factors + weightsᵀ v      for each block of keys
//! ```
//!
//! Rows of the matrices are queries times heads that share keys.

use super::blocks::{BLOCK, LOWEST};
use super::product::{MAX_TILE_ROWS, Sizes, Strided, product, tile_columns};
use crate::simd::{Lanes, exp};

/// The sizes of a block of queries.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// Queries times heads.
    pub n_rows: usize,
    /// Elements of a head.
    pub head_dim: usize,
}

/// The matrices.
pub(super) struct Work<'a> {
    shape: Shape,
    /// Rows, rounded up to whole vectors of tiles.
    pub rows: usize,
    /// Elements of a head, rounded up likewise.
    columns: usize,
    /// Queries, scaled, in panels (rows / width, head_dim, width).
    q: &'a mut [f32],
    /// Keys, (BLOCK, head_dim).
    pub k: &'a mut [f32],
    /// Values, in panels (columns / width, BLOCK, width).
    pub v: &'a mut [f32],
    /// Scores, then weights, (BLOCK, rows).
    s: &'a mut [f32],
    /// Sums of values, (rows, columns).
    o: &'a mut [f32],
    /// The largest score of each row.
    peaks: &'a mut [f32],
    /// The sum of weights of each row.
    weights: &'a mut [f32],
    /// By what each row's sums shrink with this block.
    factors: &'a mut [f32],
}

impl Shape {
    fn rows<L: Lanes>(self) -> usize {
        let tiles = tile_columns::<L>().max(MAX_TILE_ROWS);
        self.n_rows.next_multiple_of(tiles)
    }

    fn columns<L: Lanes>(self) -> usize {
        self.head_dim.next_multiple_of(tile_columns::<L>())
    }

    /// Floats that the matrices take.
    pub fn room<L: Lanes>(self) -> usize {
        let (rows, columns, head_dim) = (self.rows::<L>(), self.columns::<L>(), self.head_dim);
        head_dim * rows + BLOCK * (head_dim + columns + rows) + rows * (columns + 3)
    }

    /// The matrices in memory of [`Shape::room`] floats.
    pub fn work<L: Lanes>(self, memory: &mut [f32]) -> Work<'_> {
        let (rows, columns, head_dim) = (self.rows::<L>(), self.columns::<L>(), self.head_dim);
        let (q, rest) = memory.split_at_mut(head_dim * rows);
        let (k, rest) = rest.split_at_mut(BLOCK * head_dim);
        let (v, rest) = rest.split_at_mut(BLOCK * columns);
        let (s, rest) = rest.split_at_mut(BLOCK * rows);
        let (o, rest) = rest.split_at_mut(rows * columns);
        let (peaks, rest) = rest.split_at_mut(rows);
        let (weights, rest) = rest.split_at_mut(rows);
        let factors = &mut rest[..rows];
        Work {
            shape: self,
            rows,
            columns,
            q,
            k,
            v,
            s,
            o,
            peaks,
            weights,
            factors,
        }
    }
}

impl Work<'_> {
    /// Scales and turns round the queries, of which `query` gives that of each row, and clears the sums.
    pub fn start<'q, L: Lanes>(&mut self, scale: f32, query: impl Fn(usize) -> &'q [f32]) {
        let width = tile_columns::<L>();
        self.q.fill(0.0);
        for row in 0..self.shape.n_rows {
            let panel = &mut self.q[row / width * width * self.shape.head_dim..];
            let column = panel[row % width..].iter_mut().step_by(width);
            for (q, x) in column.zip(query(row)) {
                *q = x * scale;
            }
        }
        self.o.fill(0.0);
        self.peaks.fill(LOWEST);
        self.weights.fill(0.0);
    }

    /// The scores of `n` keys, which lie in `k` unless they are given.
    #[inline(always)]
    pub fn score<L: Lanes>(&mut self, keys: Option<Strided>, n: usize) {
        let head_dim = self.shape.head_dim;
        let keys = keys.unwrap_or(Strided {
            elements: self.k,
            row: head_dim,
            col: 1,
        });
        let sizes = Sizes {
            m: n,
            n: self.rows,
            k: head_dim,
            panel_rows: head_dim,
        };
        product::<L, false>(keys, self.q, self.s, sizes)
    }

    /// The scores of `n` keys, (n, rows).
    pub fn scores(&mut self, n: usize) -> &mut [f32] {
        &mut self.s[..n * self.rows]
    }

    /// Turns the scores of `n` keys into weights, and adds their values, which lie in `v` unless they are given, in such
    /// panels.
    #[inline(always)]
    pub fn sum<L: Lanes>(&mut self, values: Option<&[f32]>, n: usize) {
        let sizes = Sizes {
            m: self.shape.n_rows,
            n: self.columns,
            k: n,
            panel_rows: BLOCK,
        };
        let (peaks, weights) = (&mut *self.peaks, &mut *self.weights);
        weigh::<L>(self.s, [peaks, weights, self.factors], n, self.rows);
        shrink::<L>(self.o, self.factors, self.columns);
        let weights = Strided {
            elements: self.s,
            row: 1,
            col: self.rows,
        };
        product::<L, true>(weights, values.unwrap_or(self.v), self.o, sizes);
    }

    /// The largest score of a row.
    pub fn peak_of(&self, row: usize) -> f32 {
        self.peaks[row]
    }

    /// The sum of a row's values, and that of its weights.
    pub fn sum_of(&self, row: usize) -> (&[f32], f32) {
        let sum = &self.o[row * self.columns..][..self.shape.head_dim];
        (sum, self.weights[row])
    }
}

/// Turns the scores of `n` keys into weights, for whole vectors of rows. `of_rows` are the largest score of each row so
/// far, the sum of its weights, and, as a result, by what its sums shrink.
#[inline(always)]
pub(super) fn weigh<L: Lanes>(s: &mut [f32], of_rows: [&mut [f32]; 3], n: usize, rows: usize) {
    assert!(s.len() >= n * rows && rows.is_multiple_of(L::N));
    assert!(of_rows.iter().all(|of_rows| of_rows.len() == rows));
    let [peaks, sums, factors] = of_rows.map(<[f32]>::as_mut_ptr);
    for row in (0..rows).step_by(L::N) {
        // SAFETY: `row + N <= rows`, and `n * rows` scores are there.
        unsafe {
            let scores = s.as_mut_ptr().add(row);
            let before = L::load(peaks.add(row));
            let mut peak = before;
            for i in 0..n {
                peak = L::load(scores.add(i * rows)).max(peak);
            }
            let factor = exp(before.sub(peak));
            let mut sum = L::load(sums.add(row)).mul(factor);
            for i in 0..n {
                let weights = exp(L::load(scores.add(i * rows)).sub(peak));
                weights.store(scores.add(i * rows));
                sum = sum.add(weights);
            }
            sum.store(sums.add(row));
            peak.store(peaks.add(row));
            factor.store(factors.add(row));
        }
    }
}

/// Multiplies each row by its factor.
#[inline(always)]
fn shrink<L: Lanes>(o: &mut [f32], factors: &[f32], columns: usize) {
    for (o, &factor) in o.chunks_exact_mut(columns).zip(factors) {
        if factor == 1.0 {
            continue;
        }
        for o in o.chunks_exact_mut(L::N) {
            // SAFETY: `reach`: there are `N` of them.
            unsafe {
                L::load(o.as_ptr())
                    .mul(L::splat(factor))
                    .store(o.as_mut_ptr())
            };
        }
    }
}
