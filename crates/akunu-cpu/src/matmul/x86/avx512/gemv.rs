//! Products of panels with a few vectors, for AVX-512 with VNNI: what decoding runs.
//!
//! Sixteen outputs are the sixteen lanes of a vector. A cell's numbers are widened to bytes once and
//! multiplied with the activations of up to four vectors by `vpdpbusd`, four columns at a time.

use std::arch::x86_64::*;

use super::cells::{Cell, Cells};
use crate::matmul::activation::{Activations, LARGEST, ScaleAndSums, Values, scale_and_inverse};
use crate::matmul::batch::{BATCH, Dots};
use crate::matmul::x86::kind::{ForCells, HALVES_WITH_MIN, for_cells, has_halves, has_min};
use crate::panels::format::{CELL, Quant, ROWS, Table};

/// The sixteen dot products of a panel with each of `M` vectors.
type Sums<const M: usize> = [__m512; M];

/// Quantises a vector.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub fn quantise(into: &mut Activations, x: &[f32], quant: Quant) {
    into.quantise_with(x, quant.offset, |cell, values| quantise_cell(cell, values));
}

/// Quantises a cell: bytes `q`, then bytes `r`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub fn quantise_cell(x: &[f32; CELL], Values(values): &mut Values) -> ScaleAndSums {
    // SAFETY: `reach`: 32 floats are read.
    let x = [0, 16].map(|at| unsafe { _mm512_loadu_ps(x.as_ptr().add(at)) });
    // The bits of positive floats are ordered as they are, NaN above all.
    let bits = |x| _mm512_castps_si512(_mm512_abs_ps(x));
    let largest = _mm512_reduce_max_epi32(_mm512_max_epi32(bits(x[0]), bits(x[1])));
    let (scale, inverse) = scale_and_inverse(f32::from_bits(largest.cast_unsigned()), LARGEST);
    let mut sums = [0; 2];
    for (half, x) in x.into_iter().enumerate() {
        let v = _mm512_cvtps_epi32(_mm512_mul_ps(x, _mm512_set1_ps(inverse)));
        sums[half] = _mm512_reduce_add_epi32(v);
        let q = _mm512_srai_epi32::<8>(_mm512_add_epi32(v, _mm512_set1_epi32(128)));
        let r = _mm512_sub_epi32(v, _mm512_slli_epi32::<8>(q));
        for (place, number) in [q, r].into_iter().enumerate() {
            let bytes = _mm512_cvtepi32_epi8(number);
            let to = values[CELL * place + 16 * half..][..16].as_mut_ptr();
            // SAFETY: `reach`: sixteen bytes.
            unsafe { _mm_storeu_si128(to.cast(), bytes) };
        }
    }
    (scale, sums)
}

/// Products of quantised cells.
///
/// # Safety
/// - `level`: AVX-512 F, BW, VL and VNNI.
/// - `reach`: `panel` points at a panel of `cells` cells; each of `x` has as many, quantised with the format's offset.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub unsafe fn panel_gemv(quant: Quant, panel: *const u8, cells: usize, x: &[Activations]) -> Dots {
    // SAFETY: passes on `level` and `reach`.
    unsafe {
        match x {
            [a] => for_cells(
                quant,
                Panel {
                    panel,
                    cells,
                    x: [a],
                },
            ),
            [a, b] => for_cells(
                quant,
                Panel {
                    panel,
                    cells,
                    x: [a, b],
                },
            ),
            [a, b, c] => for_cells(
                quant,
                Panel {
                    panel,
                    cells,
                    x: [a, b, c],
                },
            ),
            [a, b, c, d, ..] => for_cells(
                quant,
                Panel {
                    panel,
                    cells,
                    x: [a, b, c, d],
                },
            ),
            [] => [[0.0; ROWS]; BATCH],
        }
    }
}

/// A panel of `cells` cells, and `M` vectors.
struct Panel<'a, const M: usize> {
    panel: *const u8,
    cells: usize,
    x: [&'a Activations; M],
}

impl<const M: usize> ForCells for Panel<'_, M> {
    type Out = Dots;

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    unsafe fn run<const BITS: u32, const SCALES: u8>(self, table: Table) -> Dots {
        // SAFETY: passes on `level` and `reach`.
        stored(unsafe { dots::<BITS, SCALES, M>(self.panel, (self.cells, table), self.x) })
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn stored<const M: usize>(sums: Sums<M>) -> Dots {
    let mut out = [[0f32; ROWS]; BATCH];
    for (out, sums) in out.iter_mut().zip(sums) {
        // SAFETY: an array of sixteen floats.
        unsafe { _mm512_storeu_ps(out.as_mut_ptr(), sums) };
    }
    out
}

/// # Safety
/// That of [`panel_gemv`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn dots<const BITS: u32, const SCALES: u8, const M: usize>(
    panel: *const u8,
    (cells, table): (usize, Table),
    x: [&Activations; M],
) -> Sums<M> {
    let mut sums = [_mm512_setzero_ps(); M];
    let mut walk = Cells::<BITS, SCALES>::from(panel, 0, table);
    for c in 0..cells {
        // SAFETY: `reach`: cell c of `cells` lies within the panel and within the activations.
        unsafe {
            let Cell {
                numbers,
                scale,
                of_halves,
                mins,
                ..
            } = walk.next();
            for m in 0..M {
                let [low, high] = integer_dots(&numbers, x[m], c);
                let factor = _mm512_set1_ps(x[m].scales.as_ptr().add(c).read());
                let dots = if has_halves(SCALES) {
                    let low = _mm512_mullo_epi32(low, of_halves[0]);
                    _mm512_add_epi32(low, _mm512_mullo_epi32(high, of_halves[1]))
                } else {
                    _mm512_add_epi32(low, high)
                };
                let factor = _mm512_mul_ps(scale, factor);
                sums[m] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots), factor, sums[m]);
                if has_min(SCALES) {
                    let weight = _mm512_set1_ps(x[m].weights_of_min.as_ptr().add(c).read());
                    sums[m] = _mm512_fmadd_ps(mins[0], weight, sums[m]);
                }
                if SCALES == HALVES_WITH_MIN {
                    let weights = x[m].weights_of_half_mins.as_ptr().add(c).read();
                    for (min, weight) in mins.into_iter().zip(weights) {
                        sums[m] = _mm512_fmadd_ps(min, _mm512_set1_ps(weight), sums[m]);
                    }
                }
            }
        }
    }
    sums
}

/// `256 Σ u q + Σ u r - offset Σ v` of each row over both halves of cell `c`.
///
/// # Safety
/// `reach`: the activations have a cell `c`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn integer_dots(numbers: &[__m512i; 8], x: &Activations, c: usize) -> [__m512i; 2] {
    // SAFETY: passes on `reach`.
    unsafe {
        let values = x.values.as_ptr().add(c).cast::<i32>();
        let [low, high] = x.starts.as_ptr().add(c).read();
        let mut sums = [0, 0, low, high].map(|start| _mm512_set1_epi32(start));
        for (place, sum) in sums.iter_mut().enumerate() {
            for j in 0..4 {
                let four = _mm512_set1_epi32(values.add(4 * place + j).read());
                *sum = _mm512_dpbusd_epi32(*sum, numbers[4 * (place % 2) + j], four);
            }
        }
        [0, 1].map(|half| _mm512_add_epi32(_mm512_slli_epi32::<8>(sums[half]), sums[2 + half]))
    }
}
