//! The loops of [`int8_gemm`](crate::matmul::x86::int8_gemm) for AVX-512 with VNNI: two panels times up to twelve vectors, whose
//! integer sums stay in registers.

use std::arch::x86_64::*;
use std::ops::Range;

use super::cells::Cells;
use super::int16_gemm::twice;
use super::scales::Scales as RowScales;
use crate::matmul::blocked_gemm::{Group, LEAST_AVX512, MOST_AVX512};
use crate::matmul::x86::int8_cell::{FOURS, Int8Block, Int8Cell};
use crate::matmul::x86::kind::{GROUPED, HALVES};
use crate::panels::format::{Quant, Scales};

/// Widens cells of a panel.
///
/// # Safety
/// - `level`: AVX-512 F, BW and VL.
/// - `reach`: the panel has the cells, of which the first begins a super-block, and `wide` has room for them.
pub unsafe fn widen(quant: Quant, panel: *const u8, cells: Range<usize>, wide: *mut Int8Cell) {
    // SAFETY: passes on `level` and `reach`.
    unsafe {
        match (quant.bits, quant.scales) {
            (4, Scales::Grouped) => widen_cells::<4, GROUPED>(panel, cells, wide),
            (4, Scales::Halves) => widen_cells::<4, HALVES>(panel, cells, wide),
            (5, Scales::Grouped) => widen_cells::<5, GROUPED>(panel, cells, wide),
            (6, Scales::Halves) => widen_cells::<6, HALVES>(panel, cells, wide),
            _ => unreachable!("{quant:?} is not multiplied as bytes"),
        }
    }
}

/// # Safety
/// That of [`widen`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn widen_cells<const BITS: u32, const SCALES: u8>(
    panel: *const u8,
    cells: Range<usize>,
    wide: *mut Int8Cell,
) {
    let mut walk = Cells::<BITS, SCALES>::from(panel, cells.start, None);
    for c in 0..cells.len() {
        // SAFETY: passes on `level` and `reach`.
        unsafe {
            let cell = walk.next();
            let wide = wide.add(c);
            for (j, numbers) in cell.numbers.into_iter().enumerate() {
                _mm512_storeu_si512((&raw mut (*wide).numbers[j]).cast(), numbers);
            }
            for (half, factors) in cell.of_halves.into_iter().enumerate() {
                _mm512_storeu_si512((&raw mut (*wide).of_halves[half]).cast(), twice(factors));
            }
            _mm512_storeu_ps((&raw mut (*wide).scales.scale).cast(), cell.scale);
            for (half, min) in cell.mins.into_iter().enumerate() {
                _mm512_storeu_ps((&raw mut (*wide).scales.mins[half]).cast(), min);
            }
        }
    }
}

/// Adds the products of `n_cells` cells of one or two panels with `n_vectors` vectors at `x`.
///
/// # Safety
/// - `level`: AVX-512 F and VNNI.
/// - `reach`: the pointers point at as many cells and sums.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub unsafe fn add(quant: Quant, groups: &[Group], x: *const u8, n_vectors: usize, n_cells: usize) {
    let sizes = (n_vectors, n_cells);
    // SAFETY: passes on `level` and `reach`.
    unsafe {
        match (quant.scales, groups) {
            (Scales::Grouped, &[a, b]) => by_vectors(Whole([a, b]), x, sizes),
            (Scales::Grouped, &[a]) => by_vectors(Whole([a]), x, sizes),
            _ => {
                for &group in groups {
                    let centre = quant.offset as i16;
                    by_vectors(InHalves { group, centre }, x, sizes);
                }
            }
        }
    }
}

/// # Safety
/// That of [`add`], for all functions below.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn by_vectors<P: Products>(products: P, x: *const u8, (n_vectors, n_cells): (usize, usize)) {
    const { assert!(LEAST_AVX512 == 6 && MOST_AVX512 == 12) };
    // SAFETY: passes on `level` and `reach`.
    unsafe {
        match n_vectors {
            6 => products.add::<6>(x.cast(), n_cells),
            7 => products.add::<7>(x.cast(), n_cells),
            8 => products.add::<8>(x.cast(), n_cells),
            9 => products.add::<9>(x.cast(), n_cells),
            10 => products.add::<10>(x.cast(), n_cells),
            11 => products.add::<11>(x.cast(), n_cells),
            12 => products.add::<12>(x.cast(), n_cells),
            _ => unreachable!("a block of {n_vectors} vectors"),
        }
    }
}

/// Panels that are multiplied with `M` vectors at once.
///
/// # Safety
/// That of [`add`].
trait Products: Sized {
    unsafe fn add<const M: usize>(self, x: *const Int8Block<M>, n_cells: usize);
}

/// All columns at once, of `R` panels: numbers that are not centred, with a minimum.
struct Whole<const R: usize>([Group; R]);

/// Each half of the columns by itself, of one panel: numbers that are centred, without minima.
struct InHalves {
    group: Group,
    centre: i16,
}

impl<const R: usize> Products for Whole<R> {
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    unsafe fn add<const M: usize>(self, x: *const Int8Block<M>, n_cells: usize) {
        // SAFETY: passes on `level` and `reach`.
        unsafe {
            for c in 0..n_cells {
                let (wide, x) = (self.0.map(|group| cell(group, c)), x.add(c));
                let mut dots = [[_mm512_setzero_si512(); R]; M];
                for j in 0..FOURS {
                    let mut weights = [_mm512_setzero_si512(); R];
                    for (weights, wide) in weights.iter_mut().zip(wide) {
                        *weights = rows(wide, j);
                    }
                    for (m, dots) in dots.iter_mut().enumerate() {
                        let x = _mm512_set1_epi32((*x).fours[j][m]);
                        for (dots, weights) in dots.iter_mut().zip(weights) {
                            *dots = _mm512_dpbusd_epi32(*dots, weights, x);
                        }
                    }
                }
                for (r, group) in self.0.into_iter().enumerate() {
                    let scales = RowScales::<1>::load(&raw const (*wide[r]).scales);
                    for (m, dots) in dots.iter().enumerate() {
                        let dots = _mm512_cvtepi32_ps(dots[r]);
                        scales.add(dots, m, &raw const (*x).scales, group.sums);
                    }
                }
            }
        }
    }
}

impl Products for InHalves {
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    unsafe fn add<const M: usize>(self, x: *const Int8Block<M>, n_cells: usize) {
        let minus_centre = _mm512_set1_epi16(-self.centre);
        // SAFETY: passes on `level` and `reach`.
        unsafe {
            for c in 0..n_cells {
                let (wide, x) = (cell(self.group, c), x.add(c));
                let mut dots = [[_mm512_setzero_si512(); M]; 2];
                let mut factors = [_mm512_setzero_ps(); 2];
                for (half, (dots, factors)) in dots.iter_mut().zip(&mut factors).enumerate() {
                    let words = _mm512_loadu_si512((&raw const (*wide).of_halves[half]).cast());
                    *factors = _mm512_cvtepi32_ps(_mm512_srai_epi32::<16>(words));
                    for (m, dots) in dots.iter_mut().enumerate() {
                        let sums = _mm512_set1_epi32((*x).sums[half][m]);
                        *dots = _mm512_madd_epi16(sums, minus_centre);
                    }
                    for j in FOURS / 2 * half..FOURS / 2 * (half + 1) {
                        let weights = rows(wide, j);
                        for (m, dots) in dots.iter_mut().enumerate() {
                            let x = _mm512_set1_epi32((*x).fours[j][m]);
                            *dots = _mm512_dpbusd_epi32(*dots, weights, x);
                        }
                    }
                }
                let scales = RowScales::<0>::load(&raw const (*wide).scales);
                let [low, high] = dots;
                for (m, (low, high)) in low.into_iter().zip(high).enumerate() {
                    // A sum of 17 bits times a factor of 8 is exact in a float.
                    let low = _mm512_mul_ps(_mm512_cvtepi32_ps(low), factors[0]);
                    let both = _mm512_fmadd_ps(_mm512_cvtepi32_ps(high), factors[1], low);
                    scales.add(both, m, &raw const (*x).scales, self.group.sums);
                }
            }
        }
    }
}

/// Cell `c` of a group.
#[inline(always)]
fn cell(group: Group, c: usize) -> *const Int8Cell {
    group.wide.cast::<Int8Cell>().wrapping_add(c)
}

/// Four columns of sixteen rows.
#[inline(always)]
unsafe fn rows(wide: *const Int8Cell, j: usize) -> __m512i {
    // SAFETY: passes on `level` and `reach`.
    unsafe { _mm512_loadu_si512((&raw const (*wide).numbers[j]).cast()) }
}
