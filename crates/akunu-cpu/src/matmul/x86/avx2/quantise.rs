//! Quantising activations as 16-bit words, with AVX2: the order of [`super::cells`].
//!
//! Of each four columns the pairs are (0, 2) and (1, 3).

use std::arch::x86_64::*;

use crate::matmul::activation::{LARGEST, ScaleAndSums, Values, scale_and_inverse};
use crate::panels::format::CELL;

/// Quantises a cell.
#[inline]
#[target_feature(enable = "avx2")]
pub fn quantise_cell(x: &[f32; CELL], Values(values): &mut Values) -> ScaleAndSums {
    let mut floats = [_mm256_setzero_ps(); 4];
    for (i, floats) in floats.iter_mut().enumerate() {
        // SAFETY: `reach`: eight of 32 floats.
        *floats = unsafe { _mm256_loadu_ps(x.as_ptr().add(8 * i)) };
    }
    let (scale, inverse) = scale_and_inverse(largest(floats), LARGEST);
    let inverse = _mm256_set1_ps(inverse);
    let mut sums = [0; 2];
    for half in 0..2 {
        let a = _mm256_cvtps_epi32(_mm256_mul_ps(floats[2 * half], inverse));
        let b = _mm256_cvtps_epi32(_mm256_mul_ps(floats[2 * half + 1], inverse));
        sums[half] = sum(_mm256_add_epi32(a, b));
        let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(a, b));
        let words = _mm256_shufflelo_epi16::<0b11_01_10_00>(words);
        let words = _mm256_shufflehi_epi16::<0b11_01_10_00>(words);
        let to = values[CELL * half..][..CELL].as_mut_ptr();
        // SAFETY: `reach`: 32 bytes.
        unsafe { _mm256_storeu_si256(to.cast(), words) };
    }
    (scale, sums)
}

/// The largest absolute value; NaN if there is one. The bits of positive floats are ordered as they are, NaN above all.
#[inline]
#[target_feature(enable = "avx2")]
pub fn largest(x: [__m256; 4]) -> f32 {
    let positive = _mm256_set1_epi32(i32::MAX);
    let mut eight = _mm256_setzero_si256();
    for x in x {
        eight = _mm256_max_epi32(eight, _mm256_and_si256(_mm256_castps_si256(x), positive));
    }
    let four = _mm_max_epi32(
        _mm256_castsi256_si128(eight),
        _mm256_extracti128_si256::<1>(eight),
    );
    let two = _mm_max_epi32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
    let one = _mm_max_epi32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two));
    f32::from_bits(_mm_cvtsi128_si32(one).cast_unsigned())
}

/// The sum of eight numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn sum(eight: __m256i) -> i32 {
    let four = _mm_add_epi32(
        _mm256_castsi256_si128(eight),
        _mm256_extracti128_si256::<1>(eight),
    );
    let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
    _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two)))
}
