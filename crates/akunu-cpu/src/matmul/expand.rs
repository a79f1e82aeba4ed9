//! Cells as bf16 tiles, for the tile instructions.
//!
//! A weight tile has 32 columns of 16 rows: line p of it holds columns 2 p and 2 p + 1, row after row.
//! f16, bf16 and f32 weights need not fit in bf16: what is left of them, `w - bf16(w)`, makes a second
//! tile.

use std::arch::x86_64::*;

use super::amx::TILE;
use super::cells512::{Cell, Cells, GROUPED, HALVES, PLAIN, WITH_MIN};
use super::format::{CELL, Float, Format, Quant, ROWS, Scales};

/// Writes cells `from..to` of a panel as tiles: to `high`, and what bf16 leaves over to `low`.
///
/// # Safety
/// The processor must have AVX-512 F, BW, VL and BF16. The panel has `to` cells; `high`, and `low` where
/// the format [has a rest](has_rest), have room for `to - from` tiles.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub unsafe fn expand(
    format: Format,
    panel: &[u8],
    (from, to): (usize, usize),
    high: *mut u8,
    low: *mut u8,
) {
    assert!(from <= to && panel.len() >= format.panel_bytes(to));
    let base = panel.as_ptr();
    // SAFETY: as the caller says.
    unsafe {
        match format {
            Format::Quant(quant) => expand_quant(quant, base, (from, to), high),
            Format::Float(Float::BF16) => {
                let bytes = (to - from) * TILE;
                base.add(from * TILE).copy_to_nonoverlapping(high, bytes);
            }
            Format::Float(float) => {
                for c in from..to {
                    let cell = base.add(c * CELL * ROWS * float.bytes());
                    let at = (c - from) * TILE;
                    split(float, cell, high.add(at), low.add(at));
                }
            }
        }
    }
}

/// Whether bf16 leaves something of these weights over.
pub fn has_rest(format: Format) -> bool {
    matches!(format, Format::Float(Float::F16 | Float::F32))
}

/// # Safety
/// As [`expand`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn expand_quant(quant: Quant, base: *const u8, cells: (usize, usize), to: *mut u8) {
    let offset = quant.offset as f32;
    // SAFETY: as the caller says.
    unsafe {
        match (quant.bits, quant.scales) {
            (4, Scales::Plain) => tiles::<4, PLAIN>(base, cells, offset, to),
            (4, Scales::WithMin) => tiles::<4, WITH_MIN>(base, cells, offset, to),
            (4, Scales::Grouped) => tiles::<4, GROUPED>(base, cells, offset, to),
            (4, Scales::Halves) => tiles::<4, HALVES>(base, cells, offset, to),
            (5, Scales::Plain) => tiles::<5, PLAIN>(base, cells, offset, to),
            (5, Scales::WithMin) => tiles::<5, WITH_MIN>(base, cells, offset, to),
            (5, Scales::Grouped) => tiles::<5, GROUPED>(base, cells, offset, to),
            (6, Scales::WithMin) => tiles::<6, WITH_MIN>(base, cells, offset, to),
            (6, Scales::Halves) => tiles::<6, HALVES>(base, cells, offset, to),
            _ => tiles::<8, PLAIN>(base, cells, offset, to),
        }
    }
}

/// # Safety
/// As [`expand`]; `cells.0` is a multiple of the cells of a super-block.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn tiles<const BITS: u32, const SCALES: u8>(
    base: *const u8,
    (from, to): (usize, usize),
    offset: f32,
    out: *mut u8,
) {
    let offset = _mm512_set1_ps(-offset);
    // SAFETY: cells up to `to` are within the panel, and their tiles within `out`.
    unsafe {
        let mut walk = Cells::<BITS, SCALES>::from(base, from);
        for c in from..to {
            let Cell {
                numbers,
                scale: first,
                second,
            } = walk.next();
            let last = if SCALES == HALVES { second } else { first };
            let plus = |scale| match SCALES {
                WITH_MIN | GROUPED => second,
                _ => _mm512_mul_ps(scale, offset),
            };
            let tile = out.add((c - from) * TILE).cast::<__m512i>();
            for (j, numbers) in numbers.into_iter().enumerate() {
                let scale = if j < 4 { first } else { last };
                let [even, odd] = four_columns(numbers, scale, plus(scale));
                _mm512_storeu_si512(tile.add(2 * j), even);
                _mm512_storeu_si512(tile.add(2 * j + 1), odd);
            }
        }
    }
}

/// Columns 0 and 1, and columns 2 and 3, as pairs of bf16: `scale * number + plus`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
fn four_columns(numbers: __m512i, scale: __m512, plus: __m512) -> [__m512i; 2] {
    let byte = _mm512_set1_epi32(255);
    let value = |number| _mm512_fmadd_ps(_mm512_cvtepi32_ps(number), scale, plus);
    let a = value(_mm512_and_si512(numbers, byte));
    let b = value(_mm512_and_si512(_mm512_srli_epi32::<8>(numbers), byte));
    let c = value(_mm512_and_si512(_mm512_srli_epi32::<16>(numbers), byte));
    let d = value(_mm512_srli_epi32::<24>(numbers));
    [interleave(a, b), interleave(c, d)]
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

/// # Safety
/// `cell` points at a cell of f16 or f32, `high` and `low` at tiles.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn split(float: Float, cell: *const u8, high: *mut u8, low: *mut u8) {
    for line in 0..CELL / 2 {
        // SAFETY: 16 lines of 32 numbers in each.
        unsafe {
            let numbers = [0, 1].map(|half| {
                let at = cell.add((2 * line + half) * ROWS * float.bytes());
                match float {
                    Float::F16 => _mm512_cvtph_ps(_mm256_loadu_si256(at.cast())),
                    _ => _mm512_loadu_ps(at.cast()),
                }
            });
            let [first, rest] = split_bf16(numbers);
            _mm512_storeu_si512(high.add(64 * line).cast(), first);
            _mm512_storeu_si512(low.add(64 * line).cast(), rest);
        }
    }
}

/// 32 numbers as bf16, and what that leaves over as bf16.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub fn split_bf16([a, b]: [__m512; 2]) -> [__m512i; 2] {
    // SAFETY: 64 bytes of plain numbers.
    let bits = |low, high| unsafe {
        std::mem::transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(high, low))
    };
    let rounded = bits(a, b);
    let wide = |half| _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(half)));
    let low_half = wide(_mm512_castsi512_si256(rounded));
    let high_half = wide(_mm512_extracti64x4_epi64::<1>(rounded));
    let rest = bits(_mm512_sub_ps(a, low_half), _mm512_sub_ps(b, high_half));
    [rounded, rest]
}
