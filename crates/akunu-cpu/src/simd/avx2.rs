//! AVX2 with FMA and F16C: 16 registers of 8 floats.

use std::arch::x86_64::*;

use half::{bf16, f16};

use super::lanes::{Lanes, WithLanes};

/// Does something with these instructions.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn run<W: WithLanes>(work: W) -> W::Output {
    work.run::<Avx2>()
}

/// 8 floats.
#[derive(Clone, Copy)]
pub(super) struct Avx2(__m256);

/// The first `n` lanes: all bits set.
#[inline]
#[target_feature(enable = "avx2")]
fn first(n: usize) -> __m256i {
    let places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32), places)
}

/// `2^n` for whole numbers from -126 to 127.
#[inline]
#[target_feature(enable = "avx2")]
fn power_of_two(n: __m256i) -> __m256 {
    let exponent = _mm256_add_epi32(n, _mm256_set1_epi32(127));
    _mm256_castsi256_ps(_mm256_slli_epi32::<23>(exponent))
}

impl Lanes for Avx2 {
    const N: usize = 8;
    const REGISTERS: usize = 16;

    #[inline(always)]
    fn splat(value: f32) -> Self {
        proved!(Avx2(_mm256_set1_ps(value)))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: `reach`: as many floats are there.
        Avx2(unsafe { _mm256_loadu_ps(from) })
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn load_part(from: *const f32, n: usize) -> Self {
        // SAFETY: `reach`: `n` floats are there; no other is read.
        Avx2(unsafe { _mm256_maskload_ps(from, first(n)) })
    }

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn load_halves(from: *const f16) -> Self {
        // SAFETY: `reach`: as many halves are there.
        Avx2(_mm256_cvtph_ps(unsafe { _mm_loadu_si128(from.cast()) }))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn load_bytes(from: *const i8) -> Self {
        // SAFETY: `reach`: as many numbers are there.
        let wide = _mm256_cvtepi8_epi32(unsafe { _mm_loadl_epi64(from.cast()) });
        Avx2(_mm256_cvtepi32_ps(wide))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn load_bf16(from: *const bf16) -> Self {
        // SAFETY: `reach`: as many numbers are there.
        let wide = _mm256_cvtepu16_epi32(unsafe { _mm_loadu_si128(from.cast()) });
        Avx2(_mm256_castsi256_ps(_mm256_slli_epi32::<16>(wide)))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: `reach`: there is room.
        unsafe { _mm256_storeu_ps(to, self.0) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn store_part(self, to: *mut f32, n: usize) {
        // SAFETY: `reach`: there is room for `n`; no other is written.
        unsafe { _mm256_maskstore_ps(to, first(n), self.0) }
    }

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn store_halves(self, to: *mut f16) {
        let halves = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(self.0);
        // SAFETY: `reach`: there is room.
        unsafe { _mm_storeu_si128(to.cast(), halves) }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        proved!(Avx2(_mm256_add_ps(self.0, other.0)))
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        proved!(Avx2(_mm256_sub_ps(self.0, other.0)))
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        proved!(Avx2(_mm256_mul_ps(self.0, other.0)))
    }

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        proved!(Avx2(_mm256_div_ps(self.0, other.0)))
    }

    #[inline(always)]
    fn fma(self, factor: Self, addend: Self) -> Self {
        proved!(Avx2(_mm256_fmadd_ps(self.0, factor.0, addend.0)))
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        proved!(Avx2(_mm256_max_ps(self.0, other.0)))
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        proved!(Avx2(_mm256_min_ps(self.0, other.0)))
    }

    #[inline(always)]
    fn round(self) -> Self {
        proved!({
            const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
            Avx2(_mm256_round_ps::<NEAREST>(self.0))
        })
    }

    /// In two steps, so that results beyond the normal numbers come out right.
    #[inline(always)]
    fn scale(self, n: Self) -> Self {
        proved!({
            let n = _mm256_cvtps_epi32(n.0);
            let half = _mm256_srai_epi32::<1>(n);
            let once = _mm256_mul_ps(self.0, power_of_two(half));
            Avx2(_mm256_mul_ps(once, power_of_two(_mm256_sub_epi32(n, half))))
        })
    }

    #[inline(always)]
    fn if_less(self, limit: Self, then: Self, otherwise: Self) -> Self {
        proved!({
            let less = _mm256_cmp_ps::<_CMP_LT_OQ>(self.0, limit.0);
            Avx2(_mm256_blendv_ps(otherwise.0, then.0, less))
        })
    }

    #[inline(always)]
    fn swap_pairs(self) -> Self {
        proved!(Avx2(_mm256_permute_ps::<0b10_11_00_01>(self.0)))
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        proved!({
            let four = _mm_add_ps(
                _mm256_castps256_ps128(self.0),
                _mm256_extractf128_ps::<1>(self.0),
            );
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        })
    }

    #[inline(always)]
    fn largest(self) -> f32 {
        proved!({
            let four = _mm_max_ps(
                _mm256_castps256_ps128(self.0),
                _mm256_extractf128_ps::<1>(self.0),
            );
            let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)))
        })
    }

    #[inline(always)]
    fn sums([a, b, c, d]: [Self; 4]) -> [f32; 4] {
        proved!({
            let pairs = _mm256_hadd_ps(_mm256_hadd_ps(a.0, b.0), _mm256_hadd_ps(c.0, d.0));
            let four = _mm_add_ps(
                _mm256_castps256_ps128(pairs),
                _mm256_extractf128_ps::<1>(pairs),
            );
            let mut sums = [0.0; 4];
            _mm_storeu_ps(sums.as_mut_ptr(), four);
            sums
        })
    }
}
