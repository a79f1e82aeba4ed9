//! Products of panels with a few vectors, for 64-bit ARM: four vectors of four rows instead of one of sixteen.
//!
//! A register holds four columns of four rows. Its weights are signed: those of up to 6 bits are small enough as they
//! are; of those of 8 bits 128 is subtracted, which is then gone from their offset.
//!
//! The loop is written once, and compiled for the two ways to multiply ([`super::multiply`]), for each format that panels
//! have ([`super::cell`]), and for one and two vectors: for more the registers would not suffice. Many vectors, a prompt, are
//! multiplied in another way ([`super::int16_gemm`]).

#[cfg(test)]
mod tests;

use std::arch::aarch64::*;
use std::marker::PhantomData;

use super::cell::{Cell, CellScales, LANES, Layout};
use super::kind::{ForCells, for_cells};
use super::multiply::Multiply;
use super::quantise::quantise_cell;
use crate::matmul::activation::{Activations, HALF};
use crate::matmul::batch::{BATCH, Dots};
use crate::panels::format::{CELL, Quant, ROWS, Table};

pub use super::multiply::{Sdot, Smull};

/// Vectors of a panel's rows.
pub const FOURS: usize = ROWS / LANES;
/// Vectors of activations that share a reading of the weights.
const PAIR: usize = 2;

/// [`dots`], compiled with the instructions of a way to multiply.
pub trait Compiled: Multiply {
    /// The products of so many cells of a panel, with the table of their codes, with each of `x`, which have as many.
    ///
    /// # Safety
    /// That of [`panel_gemv`].
    unsafe fn dots<S: Layout, const BITS: u32, const M: usize>(
        panel: *const u8,
        cells: (usize, Table),
        x: [&Activations; M],
    ) -> [[f32; ROWS]; M];
}

impl Compiled for Sdot {
    #[target_feature(enable = "neon,dotprod")]
    unsafe fn dots<S: Layout, const BITS: u32, const M: usize>(
        panel: *const u8,
        cells: (usize, Table),
        x: [&Activations; M],
    ) -> [[f32; ROWS]; M] {
        // SAFETY: passes on `level` and `reach`.
        unsafe { dots::<Self, S, BITS, M>(panel, cells, x) }
    }
}

impl Compiled for Smull {
    #[target_feature(enable = "neon")]
    unsafe fn dots<S: Layout, const BITS: u32, const M: usize>(
        panel: *const u8,
        cells: (usize, Table),
        x: [&Activations; M],
    ) -> [[f32; ROWS]; M] {
        // SAFETY: passes on `level` and `reach`.
        unsafe { dots::<Self, S, BITS, M>(panel, cells, x) }
    }
}

/// Quantises a vector. Numbers of 8 bits are signed here: 128 of their offset is gone.
pub fn quantise(into: &mut Activations, x: &[f32], quant: Quant) {
    let gone = if quant.has_bytes() { 128 } else { 0 };
    into.quantise_with(x, quant.offset - gone, |cell, values| {
        // SAFETY: every 64-bit ARM CPU has NEON.
        unsafe { quantise_cell(cell, values) }
    });
}

/// Products of quantised cells.
///
/// # Safety
/// - `level`: the instructions of `D`.
/// - `reach`: `panel` points at a panel of `cells` cells; each of `x` has as many, quantised with the format's offset.
pub unsafe fn panel_gemv<D: Compiled>(
    quant: Quant,
    panel: *const u8,
    cells: usize,
    x: &[Activations],
) -> Dots {
    let mut out = [[0f32; ROWS]; BATCH];
    for (out, x) in out.chunks_exact_mut(PAIR).zip(x.chunks(PAIR)) {
        // SAFETY: passes on `level` and `reach`.
        unsafe {
            match x {
                [a, b] => out.copy_from_slice(&dots_of::<D, 2>(quant, panel, cells, [a, b])),
                [a] => out[..1].copy_from_slice(&dots_of::<D, 1>(quant, panel, cells, [a])),
                _ => unreachable!("chunks of {PAIR}"),
            }
        }
    }
    out
}

/// # Safety
/// That of [`panel_gemv`].
unsafe fn dots_of<D: Compiled, const M: usize>(
    quant: Quant,
    panel: *const u8,
    cells: usize,
    x: [&Activations; M],
) -> [[f32; ROWS]; M] {
    let few = FewDots::<D, M> {
        panel,
        cells,
        x,
        way: PhantomData,
    };
    // SAFETY: passes on `level` and `reach`.
    unsafe { for_cells(quant, few) }
}

/// A panel on its way to products with `M` vectors.
struct FewDots<'a, D, const M: usize> {
    panel: *const u8,
    cells: usize,
    x: [&'a Activations; M],
    way: PhantomData<D>,
}

impl<D: Compiled, const M: usize> ForCells for FewDots<'_, D, M> {
    type Out = [[f32; ROWS]; M];

    #[inline]
    unsafe fn run<S: Layout, const BITS: u32>(self, table: Table) -> [[f32; ROWS]; M] {
        // SAFETY: passes on `level` and `reach`.
        unsafe { D::dots::<S, BITS, M>(self.panel, (self.cells, table), self.x) }
    }
}

/// The loop. It and all that it calls is inlined into [`Compiled::dots`], which is compiled with the instructions.
///
/// # Safety
/// That of [`panel_gemv`], for all functions below.
#[inline(always)]
unsafe fn dots<D: Multiply, S: Layout, const BITS: u32, const M: usize>(
    panel: *const u8,
    (cells, table): (usize, Table),
    x: [&Activations; M],
) -> [[f32; ROWS]; M] {
    let mut out = [[0f32; ROWS]; M];
    // SAFETY: `reach`: cell c of `cells` lies within the panel and within the activations.
    unsafe {
        let mut sums = [[vdupq_n_f32(0.0); M]; FOURS];
        for c in 0..cells {
            let cell = Cell::<S, BITS>::at(panel, c, table);
            for (four, sums) in sums.iter_mut().enumerate() {
                let numbers = cell.numbers(four);
                let scales = cell.scales(four);
                for m in 0..M {
                    let low = half_dots::<D, BITS>(&numbers, x[m], (c, 0));
                    let high = half_dots::<D, BITS>(&numbers, x[m], (c, 1));
                    sums[m] = add::<S>(sums[m], [low, high], scales, (x[m], c));
                }
            }
        }
        for (four, sums) in sums.into_iter().enumerate() {
            for (out, sum) in out.iter_mut().zip(sums) {
                vst1q_f32(out[LANES * four..].as_mut_ptr(), sum);
            }
        }
    }
    out
}

/// `256 Σ u q + Σ u r - offset Σ v` of four rows over a half of cell `c`.
#[inline(always)]
unsafe fn half_dots<D: Multiply, const BITS: u32>(
    numbers: &[int8x16_t; 8],
    x: &Activations,
    (c, half): (usize, usize),
) -> int32x4_t {
    let j = 4 * half;
    let numbers = [numbers[j], numbers[j + 1], numbers[j + 2], numbers[j + 3]];
    // SAFETY: passes on `level` and `reach`.
    unsafe {
        let values = x.values.as_ptr().add(c).cast::<i8>().add(HALF * half);
        let start = vld1q_dup_s32(x.starts.as_ptr().add(c).cast::<i32>().add(half));
        let q = D::add_products::<BITS>(vdupq_n_s32(0), numbers, vld1q_s8(values));
        let r = D::add_products::<BITS>(start, numbers, vld1q_s8(values.add(CELL)));
        vaddq_s32(vshlq_n_s32::<8>(q), r)
    }
}

/// `sum` plus the products of four rows with cell `c` of `x`.
#[inline(always)]
unsafe fn add<S: Layout>(
    sum: float32x4_t,
    [low, high]: [int32x4_t; 2],
    CellScales { scales, mins }: CellScales,
    (x, c): (&Activations, usize),
) -> float32x4_t {
    // SAFETY: passes on `level` and `reach`.
    unsafe {
        let factor = x.scales.as_ptr().add(c).read();
        let dots = if S::SCALES.has_halves() {
            let dots = vmulq_f32(vcvtq_f32_s32(low), scales[0]);
            vfmaq_f32(dots, vcvtq_f32_s32(high), scales[1])
        } else {
            vmulq_f32(vcvtq_f32_s32(vaddq_s32(low, high)), scales[0])
        };
        let sum = vfmaq_n_f32(sum, dots, factor);
        if S::SCALES.has_min() && S::SCALES.has_halves() {
            let weights = x.weights_of_half_mins.as_ptr().add(c).read();
            let sum = vfmaq_n_f32(sum, mins[0], weights[0]);
            vfmaq_n_f32(sum, mins[1], weights[1])
        } else if S::SCALES.has_min() {
            vfmaq_n_f32(sum, mins[0], x.weights_of_min.as_ptr().add(c).read())
        } else {
            sum
        }
    }
}
