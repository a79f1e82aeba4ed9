//! AVX-512: 32 registers of 16 floats, and masks for the rest of a row.

use std::arch::x86_64::*;

use half::{bf16, f16};

use super::lanes::{Lanes, WithLanes};

/// Does something with these instructions.
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(super) fn run<W: WithLanes>(work: W) -> W::Output {
    work.run::<Avx512>()
}

/// 16 floats.
#[derive(Clone, Copy)]
pub(super) struct Avx512(__m512);

/// The first `n` lanes.
#[inline]
#[target_feature(enable = "avx512f")]
fn first(n: usize) -> __mmask16 {
    (1u16 << n) - 1
}

impl Lanes for Avx512 {
    const N: usize = 16;
    const REGISTERS: usize = 32;

    #[inline(always)]
    fn splat(value: f32) -> Self {
        proved!(Avx512(_mm512_set1_ps(value)))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: `reach`: as many floats are there.
        Avx512(unsafe { _mm512_loadu_ps(from) })
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load_part(from: *const f32, n: usize) -> Self {
        // SAFETY: `reach`: `n` floats are there; no other is read.
        Avx512(unsafe { _mm512_maskz_loadu_ps(first(n), from) })
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load_halves(from: *const f16) -> Self {
        // SAFETY: `reach`: as many halves are there.
        Avx512(_mm512_cvtph_ps(unsafe { _mm256_loadu_si256(from.cast()) }))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load_bytes(from: *const i8) -> Self {
        // SAFETY: `reach`: as many numbers are there.
        let wide = _mm512_cvtepi8_epi32(unsafe { _mm_loadu_si128(from.cast()) });
        Avx512(_mm512_cvtepi32_ps(wide))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load_bf16(from: *const bf16) -> Self {
        // SAFETY: `reach`: as many numbers are there.
        let wide = _mm512_cvtepu16_epi32(unsafe { _mm256_loadu_si256(from.cast()) });
        Avx512(_mm512_castsi512_ps(_mm512_slli_epi32::<16>(wide)))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: `reach`: there is room.
        unsafe { _mm512_storeu_ps(to, self.0) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn store_part(self, to: *mut f32, n: usize) {
        // SAFETY: `reach`: there is room for `n`; no other is written.
        unsafe { _mm512_mask_storeu_ps(to, first(n), self.0) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn store_halves(self, to: *mut f16) {
        let halves = _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(self.0);
        // SAFETY: `reach`: there is room.
        unsafe { _mm256_storeu_si256(to.cast(), halves) }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        proved!(Avx512(_mm512_add_ps(self.0, other.0)))
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        proved!(Avx512(_mm512_sub_ps(self.0, other.0)))
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        proved!(Avx512(_mm512_mul_ps(self.0, other.0)))
    }

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        proved!(Avx512(_mm512_div_ps(self.0, other.0)))
    }

    #[inline(always)]
    fn fma(self, factor: Self, addend: Self) -> Self {
        proved!(Avx512(_mm512_fmadd_ps(self.0, factor.0, addend.0)))
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        proved!(Avx512(_mm512_max_ps(self.0, other.0)))
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        proved!(Avx512(_mm512_min_ps(self.0, other.0)))
    }

    #[inline(always)]
    fn round(self) -> Self {
        proved!(Avx512(_mm512_roundscale_ps::<_MM_FROUND_TO_NEAREST_INT>(
            self.0
        )))
    }

    #[inline(always)]
    fn scale(self, n: Self) -> Self {
        proved!(Avx512(_mm512_scalef_ps(self.0, n.0)))
    }

    #[inline(always)]
    fn if_less(self, limit: Self, then: Self, otherwise: Self) -> Self {
        proved!({
            let less = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(self.0, limit.0);
            Avx512(_mm512_mask_blend_ps(less, otherwise.0, then.0))
        })
    }

    #[inline(always)]
    fn swap_pairs(self) -> Self {
        proved!(Avx512(_mm512_permute_ps::<0b10_11_00_01>(self.0)))
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        proved!(_mm512_reduce_add_ps(self.0))
    }

    #[inline(always)]
    fn largest(self) -> f32 {
        proved!(_mm512_reduce_max_ps(self.0))
    }

    #[inline(always)]
    fn sums(four: [Self; 4]) -> [f32; 4] {
        proved!(sums(four))
    }
}

/// Pairs of vectors are added crosswise, so that each step halves the number of vectors and keeps
/// the sums of each apart; at last the four quarters are added.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn sums([a, b, c, d]: [Avx512; 4]) -> [f32; 4] {
    let halves =
        |x: __m512, y: __m512| _mm512_add_ps(_mm512_unpacklo_ps(x, y), _mm512_unpackhi_ps(x, y));
    let (ab, cd) = (halves(a.0, b.0), halves(c.0, d.0));
    let low = _mm512_shuffle_ps::<0b01_00_01_00>(ab, cd);
    let high = _mm512_shuffle_ps::<0b11_10_11_10>(ab, cd);
    let quarters = _mm512_add_ps(low, high);
    let eight = _mm256_add_ps(
        _mm512_castps512_ps256(quarters),
        _mm512_extractf32x8_ps::<1>(quarters),
    );
    let four = _mm_add_ps(
        _mm256_castps256_ps128(eight),
        _mm256_extractf128_ps::<1>(eight),
    );
    let mut sums = [0.0; 4];
    // SAFETY: `reach`: there is room for four floats.
    unsafe { _mm_storeu_ps(sums.as_mut_ptr(), four) };
    sums
}
