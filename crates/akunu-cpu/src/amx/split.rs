//! Floating-point numbers as tiles of bf16.
//!
//! bf16 has 8 significant bits. So a number is split in two, `w = w₁ + w₂`, each a bf16: f16 loses nothing by that,
//! f32 the last 8 of its 24 bits. A tile has a line for each of 16 rows, 32 columns long. Which columns stand side by
//! side is of no matter as long as both factors agree: pair p of a line is columns p and 16 + p, since that is one
//! instruction to make.

use std::arch::x86_64::*;

use half::{bf16, f16};

use super::COLUMNS;

/// Half of the columns of a tile.
const HALF: usize = COLUMNS / 2;

/// Numbers that can be split.
pub trait Split: Sized {
    /// Whether a second part is ever anything but zero.
    const REST: bool;

    /// Both parts of 32 numbers at `at`, as pairs; of the first and the second half of the columns only those in
    /// `masks` are read, and the others are zeros.
    ///
    /// # Safety
    /// - `level`: AVX-512 F, BW, VL and BF16.
    /// - `reach`: the numbers are there.
    unsafe fn line(at: *const Self, masks: [u16; 2]) -> [__m512i; 2];
}

/// Which columns there are in both halves of a line with `columns` of them.
pub fn masks(columns: usize) -> [u16; 2] {
    let mask = u32::MAX.unbounded_shr(COLUMNS.saturating_sub(columns) as u32);
    [mask as u16, (mask >> HALF) as u16]
}

/// f16 has 11 significant bits: the upper half of its f32 holds 8 of them, and the other 3 are a bf16.
impl Split for f16 {
    const REST: bool = true;

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    unsafe fn line(at: *const f16, masks: [u16; 2]) -> [__m512i; 2] {
        let at = at.cast::<i16>();
        // SAFETY: passes on `level` and `reach`.
        let (a, b) = unsafe {
            (
                _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(masks[0], at)),
                _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(masks[1], at.wrapping_add(HALF))),
            )
        };
        let rest_of_a = _mm512_sub_ps(a, upper_half(a));
        let rest_of_b = _mm512_sub_ps(b, upper_half(b));
        [pairs(a, b), pairs(rest_of_a, rest_of_b)]
    }
}

impl Split for bf16 {
    const REST: bool = false;

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    unsafe fn line(at: *const bf16, masks: [u16; 2]) -> [__m512i; 2] {
        let at = at.cast::<i16>();
        // SAFETY: passes on `level` and `reach`.
        let (a, b) = unsafe {
            (
                _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(masks[0], at)),
                _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(masks[1], at.wrapping_add(HALF))),
            )
        };
        let pairs = _mm512_or_si512(a, _mm512_slli_epi32::<16>(b));
        [pairs, _mm512_setzero_si512()]
    }
}

impl Split for f32 {
    const REST: bool = true;

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    unsafe fn line(at: *const f32, masks: [u16; 2]) -> [__m512i; 2] {
        // SAFETY: passes on `level` and `reach`.
        let (a, b) = unsafe {
            (
                _mm512_maskz_loadu_ps(masks[0], at),
                _mm512_maskz_loadu_ps(masks[1], at.wrapping_add(HALF)),
            )
        };
        split(a, b)
    }
}

/// Both parts of sixteen pairs of numbers: the nearest bf16, and the bf16 that is nearest to what is left.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub fn split(a: __m512, b: __m512) -> [__m512i; 2] {
    let (first_a, first_b) = (nearest(a), nearest(b));
    let rest_of_a = nearest(_mm512_sub_ps(a, first_a));
    let rest_of_b = nearest(_mm512_sub_ps(b, first_b));
    [pairs(first_a, first_b), pairs(rest_of_a, rest_of_b)]
}

/// The numbers with the lower 16 bits zero.
#[inline]
#[target_feature(enable = "avx512f")]
fn upper_half(x: __m512) -> __m512 {
    let mask = _mm512_set1_epi32(0xffff_0000_u32.cast_signed());
    _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(x), mask))
}

/// The nearest bf16, as f32.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
fn nearest(x: __m512) -> __m512 {
    // SAFETY: `reach`: 32 bytes of plain numbers.
    let narrow: __m256i = unsafe { std::mem::transmute(_mm512_cvtneps_pbh(x)) };
    _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(narrow)))
}

/// The upper 16 bits of `a` and of `b` in one lane: `mask ? b : a >> 16`, bit by bit.
#[inline]
#[target_feature(enable = "avx512f")]
fn pairs(a: __m512, b: __m512) -> __m512i {
    let mask = _mm512_set1_epi32(0xffff_0000_u32.cast_signed());
    let (a, b) = (_mm512_castps_si512(a), _mm512_castps_si512(b));
    _mm512_ternarylogic_epi32::<0xca>(mask, b, _mm512_srli_epi32::<16>(a))
}
