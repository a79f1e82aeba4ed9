//! The weights of a panel as bf16 tiles, for the tile instructions.
//!
//! A weight tile has 32 columns of 16 rows: line p of it holds columns 2 p and 2 p + 1, row after row.

use std::arch::x86_64::*;

use crate::amx::TILE;
use crate::matmul::x86::avx512::cells::{Cell, Cells};
use crate::matmul::x86::kind::{ForCells, GROUPED, HALVES_WITH_MIN, WITH_MIN, for_cells};
use crate::panels::format::{Quant, Table};

/// Writes cells `from..to` of a panel as tiles.
///
/// # Safety
/// - `level`: AVX-512 F, BW, VL and BF16.
/// - `reach`: `from` is a multiple of the cells of a super-block, the panel has `to` cells, and `out` has room for `to - from`
///   tiles.
pub unsafe fn expand(quant: Quant, panel: &[u8], (from, to): (usize, usize), out: *mut u8) {
    assert!(from <= to && panel.len() >= quant.panel_bytes(to));
    let run = Run {
        panel: panel.as_ptr(),
        cells: (from, to),
        offset: quant.offset as f32,
        out,
    };
    // SAFETY: passes on `level` and `reach`.
    unsafe { for_cells(quant, run) }
}

/// A run of cells on its way to tiles.
struct Run {
    panel: *const u8,
    cells: (usize, usize),
    offset: f32,
    out: *mut u8,
}

impl ForCells for Run {
    type Out = ();

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    unsafe fn run<const BITS: u32, const SCALES: u8>(self, table: Table) {
        // SAFETY: passes on `level` and `reach`.
        unsafe { tiles::<BITS, SCALES>((self.panel, table), self.cells, self.offset, self.out) }
    }
}

/// What is added to `scale * number` in both halves of a cell: the minimum, or what the offset takes away.
#[inline]
#[target_feature(enable = "avx512f")]
fn plus<const SCALES: u8>(cell: &Cell, offset: f32) -> [__m512; 2] {
    match SCALES {
        WITH_MIN | GROUPED | HALVES_WITH_MIN => cell.mins,
        _ => {
            let offset = _mm512_set1_ps(-offset);
            let scales = cell.scales::<SCALES>();
            scales.map(|scale| _mm512_mul_ps(scale, offset))
        }
    }
}

/// # Safety
/// That of [`expand`]. `reach`: `cells.0` is a multiple of the cells of a super-block.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn tiles<const BITS: u32, const SCALES: u8>(
    (base, table): (*const u8, Table),
    (from, to): (usize, usize),
    offset: f32,
    out: *mut u8,
) {
    // SAFETY: `reach`: cells up to `to` are within the panel, and their tiles within `out`.
    unsafe {
        let mut walk = Cells::<BITS, SCALES>::from(base, from, table);
        for c in from..to {
            let cell = walk.next();
            let scales = cell.scales::<SCALES>();
            let plus = plus::<SCALES>(&cell, offset);
            let tile = out.add((c - from) * TILE).cast::<__m512i>();
            for (j, numbers) in cell.numbers.into_iter().enumerate() {
                let [a, b, c, d] = columns(numbers, scales[j / 4], plus[j / 4]);
                _mm512_storeu_si512(tile.add(2 * j), interleave(a, b));
                _mm512_storeu_si512(tile.add(2 * j + 1), interleave(c, d));
            }
        }
    }
}

/// Four columns of sixteen rows: `scale * number + plus`.
#[inline]
#[target_feature(enable = "avx512f")]
fn columns(numbers: __m512i, scale: __m512, plus: __m512) -> [__m512; 4] {
    let byte = _mm512_set1_epi32(255);
    let value = |number| _mm512_fmadd_ps(_mm512_cvtepi32_ps(number), scale, plus);
    [
        value(_mm512_and_si512(numbers, byte)),
        value(_mm512_and_si512(_mm512_srli_epi32::<8>(numbers), byte)),
        value(_mm512_and_si512(_mm512_srli_epi32::<16>(numbers), byte)),
        value(_mm512_srli_epi32::<24>(numbers)),
    ]
}

/// `a[0] b[0] a[1] b[1] …` as bf16.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
fn interleave(a: __m512, b: __m512) -> __m512i {
    // SAFETY: both are 64 bytes of plain numbers.
    let both: __m512i = unsafe { std::mem::transmute(_mm512_cvtne2ps_pbh(b, a)) };
    let order = _mm512_set_epi16(
        31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4,
        19, 3, 18, 2, 17, 1, 16, 0,
    );
    _mm512_permutexvar_epi16(order, both)
}
