//! Products of small matrices that lie in the cache: `c = a · b`, or `c += a · b`.
//!
//! `b` lies in panels of as many columns as a tile has, one after the other: rows of a matrix whose
//! width is a power of two would all fall into the same few sets of the cache.

use crate::simd::Lanes;

/// A matrix: element (i, j) lies at `i * row + j * col`.
#[derive(Clone, Copy)]
pub(super) struct Strided<'a> {
    pub elements: &'a [f32],
    pub row: usize,
    pub col: usize,
}

/// Sizes: `c` is (m, n), `a` is (m, k), `b` is (k, n).
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// Rows that each panel of `b` has room for.
    pub panel_rows: usize,
}

/// Columns of a tile.
pub(super) const fn tile_columns<L: Lanes>() -> usize {
    2 * L::N
}

/// The most rows of a tile: `c` has room for whole tiles, and `a` for their rows.
pub(super) const MAX_TILE_ROWS: usize = 8;

/// `c = a · b` or, with `ADD`, `c += a · b`. `b` is (n / tile_columns, k, tile_columns), with room for
/// `panel_rows` rows in each panel; rows of `c` lie `n` apart; `n` is a multiple of [`tile_columns`], and
/// `m` is rounded up to whole tiles.
#[inline(always)]
pub(super) fn product<L: Lanes, const ADD: bool>(
    a: Strided,
    b: &[f32],
    c: &mut [f32],
    sizes: Sizes,
) {
    if const { L::REGISTERS >= 32 } {
        tiles::<L, 8, ADD>(a, b, c, sizes);
    } else {
        tiles::<L, 4, ADD>(a, b, c, sizes);
    }
}

#[inline(always)]
fn tiles<L: Lanes, const ROWS: usize, const ADD: bool>(
    a: Strided,
    b: &[f32],
    c: &mut [f32],
    sizes: Sizes,
) {
    let (n, k, columns) = (sizes.n, sizes.k, tile_columns::<L>());
    let m = sizes.m.next_multiple_of(ROWS);
    if m == 0 || k == 0 {
        return;
    }
    assert!(n.is_multiple_of(columns) && k <= sizes.panel_rows);
    assert!(b.len() >= sizes.panel_rows * n && c.len() >= m * n);
    assert!(a.elements.len() > (m - 1) * a.row + (k - 1) * a.col);
    for j in (0..n).step_by(columns) {
        for i in (0..m).step_by(ROWS) {
            // SAFETY: `reach`: a tile at (i, j) reads rows i .. i + ROWS of `a` and the panel of columns
            // j .. j + 2N of `b`, and writes there in `c`, all within the sizes just compared.
            unsafe {
                let a_first = a.elements.as_ptr().add(i * a.row);
                let b_first = b.as_ptr().add(j * sizes.panel_rows);
                let c_first = c.as_mut_ptr().add(i * n + j);
                tile::<L, ROWS, ADD>((a_first, a.row, a.col), b_first, c_first, (n, k));
            }
        }
    }
}

/// One tile: its sums stay in registers while k goes by.
///
/// # Safety
/// `reach`: `a` has the rows of a tile and `k` columns, `b` is a panel of `k` rows, `c` has the tile.
#[inline(always)]
unsafe fn tile<L: Lanes, const ROWS: usize, const ADD: bool>(
    (a, a_row, a_col): (*const f32, usize, usize),
    b: *const f32,
    c: *mut f32,
    (n, k): (usize, usize),
) {
    // SAFETY: passes on `reach`.
    unsafe {
        let mut sums = [[L::splat(0.0); 2]; ROWS];
        if ADD {
            for (i, sums) in sums.iter_mut().enumerate() {
                *sums = [L::load(c.add(i * n)), L::load(c.add(i * n + L::N))];
            }
        }
        for at in 0..k {
            let row = b.add(at * tile_columns::<L>());
            let (left, right) = (L::load(row), L::load(row.add(L::N)));
            for (i, sums) in sums.iter_mut().enumerate() {
                let factor = L::splat(*a.add(i * a_row + at * a_col));
                sums[0] = factor.fma(left, sums[0]);
                sums[1] = factor.fma(right, sums[1]);
            }
        }
        for (i, sums) in sums.into_iter().enumerate() {
            sums[0].store(c.add(i * n));
            sums[1].store(c.add(i * n + L::N));
        }
    }
}
