//! Products of panels with a few vectors, for AVX2: what decoding runs.
//!
//! Two vectors of eight rows instead of one of sixteen. `vpmaddwd` multiplies a row's pair of columns with the pair of
//! activations as 16-bit numbers, and adds both products: one multiplication for what would take two of bytes.

use std::arch::x86_64::*;

use super::cells::{CellScales, Cells, LANES};
use super::quantise;
use crate::matmul::activation::Activations;
use crate::matmul::batch::{BATCH, Dots};
use crate::matmul::x86::kind::{ForCells, HALVES_WITH_MIN, for_cells, has_halves, has_min};
use crate::panels::format::{Quant, ROWS, Table};

/// Vectors that share a reading of the weights: for more there are too few registers.
const PAIR: usize = 2;

/// Quantises a vector.
#[target_feature(enable = "avx2")]
pub fn quantise(into: &mut Activations, x: &[f32], quant: Quant) {
    into.quantise_with(x, quant.offset, |cell, values| {
        quantise::quantise_cell(cell, values)
    });
}

/// Products of quantised cells.
///
/// # Safety
/// - `level`: AVX2, FMA and F16C.
/// - `reach`: `panel` points at a panel of `cells` cells; each of `x` has as many, quantised with the format's offset.
#[target_feature(enable = "avx2,fma,f16c")]
pub unsafe fn panel_gemv(quant: Quant, panel: *const u8, cells: usize, x: &[Activations]) -> Dots {
    let mut out = [[0f32; ROWS]; BATCH];
    for (out, x) in out.chunks_exact_mut(PAIR).zip(x.chunks(PAIR)) {
        // SAFETY: passes on `level` and `reach`.
        unsafe {
            match x {
                [a, b] => out.copy_from_slice(&for_cells(quant, Panel::new(panel, cells, [a, b]))),
                [a] => out[..1].copy_from_slice(&for_cells(quant, Panel::new(panel, cells, [a]))),
                _ => unreachable!("chunks of {PAIR}"),
            }
        }
    }
    out
}

/// A panel of `cells` cells, and `M` vectors.
struct Panel<'a, const M: usize> {
    panel: *const u8,
    cells: usize,
    x: [&'a Activations; M],
}

impl<'a, const M: usize> Panel<'a, M> {
    fn new(panel: *const u8, cells: usize, x: [&'a Activations; M]) -> Self {
        Panel { panel, cells, x }
    }
}

impl<const M: usize> ForCells for Panel<'_, M> {
    type Out = [[f32; ROWS]; M];

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn run<const BITS: u32, const SCALES: u8>(self, table: Table) -> [[f32; ROWS]; M] {
        // SAFETY: passes on `level` and `reach`.
        unsafe { dots::<BITS, SCALES, M>(self.panel, (self.cells, table), self.x) }
    }
}

/// Inlined into a function that is compiled with the instructions, as all below.
///
/// # Safety
/// That of [`panel_gemv`].
#[inline(always)]
unsafe fn dots<const BITS: u32, const SCALES: u8, const M: usize>(
    panel: *const u8,
    (cells, table): (usize, Table),
    x: [&Activations; M],
) -> [[f32; ROWS]; M] {
    // SAFETY: `reach`: cell c of `cells` lies within the panel and within the activations.
    unsafe {
        let mut sums = [[_mm256_setzero_ps(); 2]; M];
        let mut walk = Cells::<BITS, SCALES>::before(panel, 0, table);
        for c in 0..cells {
            walk.advance();
            let dots = integer_dots(&walk, x, c);
            for half in 0..2 {
                let scales = walk.scales(half);
                for m in 0..M {
                    sums[m][half] = add::<SCALES>(sums[m][half], dots[m][half], scales, (x[m], c));
                }
            }
        }
        let mut out = [[0f32; ROWS]; M];
        for (out, sums) in out.iter_mut().zip(sums) {
            for (half, sum) in sums.into_iter().enumerate() {
                _mm256_storeu_ps(out.as_mut_ptr().add(LANES * half), sum);
            }
        }
        out
    }
}

/// `Σ u v - offset Σ v` of cell `c`, for both vectors of rows: over both halves of the columns, where these have scales;
/// else the first is that over all columns.
///
/// # Safety
/// `reach`: the walk is at the cell, and the activations have it.
#[inline(always)]
unsafe fn integer_dots<const BITS: u32, const SCALES: u8, const M: usize>(
    walk: &Cells<BITS, SCALES>,
    x: [&Activations; M],
    c: usize,
) -> Sums<M> {
    // SAFETY: passes on `reach`.
    unsafe {
        let mut sums: Sums<M> = [[[_mm256_setzero_si256(); 2]; 2]; M];
        for (sums, x) in sums.iter_mut().zip(x) {
            let [low, high] = x.starts.as_ptr().add(c).read();
            *sums = if has_halves(SCALES) {
                [[_mm256_set1_epi32(low), _mm256_set1_epi32(high)]; 2]
            } else {
                [[_mm256_set1_epi32(low.wrapping_add(high)); 2]; 2]
            };
        }
        add_fours::<BITS, SCALES, M, 0>(&mut sums, walk, x, c);
        add_fours::<BITS, SCALES, M, 1>(&mut sums, walk, x, c);
        add_fours::<BITS, SCALES, M, 2>(&mut sums, walk, x, c);
        add_fours::<BITS, SCALES, M, 3>(&mut sums, walk, x, c);
        sums
    }
}

/// Integer sums of each vector, each half of the rows, and each half of the columns.
type Sums<const M: usize> = [[[__m256i; 2]; 2]; M];

/// Adds the products of columns 4 J to 4 J + 3 and 16 + 4 J to 19 + 4 J.
///
/// # Safety
/// That of [`integer_dots`].
#[inline(always)]
unsafe fn add_fours<const BITS: u32, const SCALES: u8, const M: usize, const J: usize>(
    sums: &mut Sums<M>,
    walk: &Cells<BITS, SCALES>,
    x: [&Activations; M],
    c: usize,
) {
    // SAFETY: passes on `reach`.
    unsafe {
        let fours = [walk.fours(J, 0), walk.fours(J, 1)];
        add_pair::<BITS, SCALES, M, 0>(sums, fours, x, (c, 2 * J));
        add_pair::<BITS, SCALES, M, 1>(sums, fours, x, (c, 2 * J + 1));
        add_pair::<BITS, SCALES, M, 2>(sums, fours, x, (c, 2 * J + 8));
        add_pair::<BITS, SCALES, M, 3>(sums, fours, x, (c, 2 * J + 9));
    }
}

/// Adds the products of the `K`-th pair of columns with pair `at` of cell `c` of the activations.
///
/// # Safety
/// That of [`integer_dots`].
#[inline(always)]
unsafe fn add_pair<const BITS: u32, const SCALES: u8, const M: usize, const K: usize>(
    sums: &mut Sums<M>,
    fours: [[__m256i; 2]; 2],
    x: [&Activations; M],
    (c, at): (usize, usize),
) {
    let of_columns = if has_halves(SCALES) { K / 2 } else { 0 };
    // SAFETY: passes on `reach`.
    unsafe {
        let low = Cells::<BITS, SCALES>::pair::<K>(fours[0]);
        let high = Cells::<BITS, SCALES>::pair::<K>(fours[1]);
        for (sums, x) in sums.iter_mut().zip(x) {
            let values = x.values.as_ptr().add(c).cast::<i32>();
            let two = _mm256_set1_epi32(values.add(at).read());
            for (sums, pair) in sums.iter_mut().zip([low, high]) {
                let products = _mm256_madd_epi16(pair, two);
                sums[of_columns] = _mm256_add_epi32(sums[of_columns], products);
            }
        }
    }
}

/// `sum` plus the products of cell `c`.
///
/// # Safety
/// `reach`: the activations have a cell `c`.
#[inline(always)]
unsafe fn add<const SCALES: u8>(
    sum: __m256,
    [low, high]: [__m256i; 2],
    CellScales {
        scale,
        of_halves,
        mins,
    }: CellScales,
    (x, c): (&Activations, usize),
) -> __m256 {
    // SAFETY: passes on `reach`.
    unsafe {
        let dots = if has_halves(SCALES) {
            let low = _mm256_mullo_epi32(low, of_halves[0]);
            _mm256_add_epi32(low, _mm256_mullo_epi32(high, of_halves[1]))
        } else {
            low
        };
        let factor = _mm256_set1_ps(x.scales.as_ptr().add(c).read());
        let factor = _mm256_mul_ps(scale, factor);
        let mut sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots), factor, sum);
        if has_min(SCALES) {
            let weight = _mm256_set1_ps(x.weights_of_min.as_ptr().add(c).read());
            sum = _mm256_fmadd_ps(mins[0], weight, sum);
        }
        if SCALES == HALVES_WITH_MIN {
            let weights = x.weights_of_half_mins.as_ptr().add(c).read();
            for (min, weight) in mins.into_iter().zip(weights) {
                sum = _mm256_fmadd_ps(min, _mm256_set1_ps(weight), sum);
            }
        }
        sum
    }
}
