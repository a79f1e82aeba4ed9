//! Floats as digits: whole numbers of 8 bits, whose products are exact.
//!
//! ```text
//! q      = scale * (65536 a + 256 b + c)      digits from -128 to 127, a scale for each 32 elements
//! weight = scale * (65536 a + 256 b + c)      digits from 0 to 255, a scale for each 32 elements of a block of keys
//! ```
//!
//! That is 24 bits, as many as a float has, and sums of whole numbers are exact: however they are added, the result is the same.

use std::arch::x86_64::*;

use super::rows::{GROUPS, LANES, QUAD, SHARED};
use crate::kernel::attention::blocks::BLOCK;

/// Digits of a number.
pub(super) const DIGITS: usize = 3;
/// The largest number made of digits of a query: its first digit is at most 127.
const LARGEST_SIGNED: f32 = (127 << 16) as f32;
/// The largest number made of digits of a weight.
const LARGEST_UNSIGNED: f32 = (255 << 16) as f32;

/// 32 elements of a query.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct QueryBlock {
    pub digits: [[i8; SHARED]; DIGITS],
    /// `-128 Σ digits`.
    pub starts: [i32; DIGITS],
    pub scale: f32,
}

/// The weights of a block of keys for 32 elements of a head: vectors of digits of four keys, as in [`super::layout::ValueQuads`].
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct WeightBlock(pub [[[u8; QUAD]; LANES]; DIGITS]);

/// The scales of values that share one among 32 elements, so that weights times them have digits.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct ValueScales {
    /// The scale of each key over the largest, times [`LARGEST_UNSIGNED`].
    pub of_keys: [f32; BLOCK],
    /// The largest over [`LARGEST_UNSIGNED`].
    pub of_sums: f32,
}

/// The largest absolute value of some numbers; NaN if one of them is: as whole numbers, its bits are beyond those of all others.
#[inline(always)]
fn peak(numbers: &[f32]) -> f32 {
    let larger = |peak: u32, x: &f32| peak.max(x.abs().to_bits());
    f32::from_bits(numbers.iter().fold(0, larger))
}

/// What makes `largest` of the peak of some numbers. If the peak is 0, or so small that there is no such factor, the numbers
/// have no digits but 0.
#[inline(always)]
fn factor(largest: f32, peak: f32) -> f32 {
    let factor = largest / peak;
    if factor.is_finite() { factor } else { 0.0 }
}

/// The vectors of a block.
#[inline]
#[target_feature(enable = "avx512f")]
fn groups(numbers: &[f32; BLOCK]) -> [__m512; GROUPS] {
    let mut groups = [_mm512_setzero_ps(); GROUPS];
    for (group, numbers) in groups.iter_mut().zip(numbers.as_chunks::<LANES>().0) {
        // SAFETY: `reach`: there are 16.
        *group = unsafe { _mm512_loadu_ps(numbers.as_ptr()) };
    }
    groups
}

impl QueryBlock {
    pub const NONE: QueryBlock = QueryBlock {
        digits: [[0; SHARED]; DIGITS],
        starts: [0; DIGITS],
        scale: 0.0,
    };

    /// The digits of some numbers. The scale of numbers of which one is NaN is NaN.
    #[inline(always)]
    pub fn of(numbers: &[f32; SHARED]) -> QueryBlock {
        let peak = peak(numbers);
        let factor = factor(LARGEST_SIGNED, peak);
        let mut rests = [0; SHARED];
        for (rest, x) in rests.iter_mut().zip(numbers) {
            let whole = (x * factor).round_ties_even();
            let whole = if whole.abs() <= LARGEST_SIGNED {
                whole
            } else {
                0.0
            };
            // SAFETY: it is a number, and within the range. A conversion that looks at this itself would not be done in vectors.
            *rest = unsafe { whole.to_int_unchecked() };
        }
        let (mut digits, mut starts) = ([[0; SHARED]; DIGITS], [0; DIGITS]);
        for (digits, start) in digits.iter_mut().zip(&mut starts).rev() {
            let mut sum = 0;
            for (digit, rest) in digits.iter_mut().zip(&mut rests) {
                // A low byte of more than 127 is a digit of less than 0.
                let next = (*rest + 128) >> 8;
                *digit = *rest as i8;
                sum += *rest - (next << 8);
                *rest = next;
            }
            *start = -128 * sum;
        }
        QueryBlock {
            digits,
            starts,
            scale: peak / LARGEST_SIGNED,
        }
    }
}

impl ValueScales {
    pub const NONE: ValueScales = ValueScales {
        of_keys: [0.0; BLOCK],
        of_sums: 0.0,
    };

    #[inline(always)]
    pub fn of(scales: &[f32; BLOCK]) -> ValueScales {
        let peak = peak(scales);
        let factor = factor(LARGEST_UNSIGNED, peak);
        let mut of_keys = *scales;
        for scale in &mut of_keys {
            *scale *= factor;
        }
        ValueScales {
            of_keys,
            of_sums: peak / LARGEST_UNSIGNED,
        }
    }
}

impl WeightBlock {
    pub const NONE: WeightBlock = WeightBlock([[[0; QUAD]; LANES]; DIGITS]);

    /// The digits of weights, which are at most 1, times scales.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn set(&mut self, weights: &[f32; BLOCK], scales: &[f32; BLOCK]) {
        let (weights, scales) = (groups(weights), groups(scales));
        let mut whole = [_mm512_setzero_si512(); GROUPS];
        for (whole, (weight, scale)) in whole.iter_mut().zip(weights.into_iter().zip(scales)) {
            *whole = _mm512_cvtps_epi32(_mm512_mul_ps(weight, scale));
        }
        // Of each number the bytes c, b, a, 0: of two numbers c c a a and b b 0 0, and of four each digit.
        let even = _mm512_set1_epi32(0x00ff_00ff);
        let pairs = |low: __m512i, high: __m512i| {
            [
                choose(even, low, _mm512_slli_epi32::<8>(high)),
                choose(even, _mm512_srli_epi32::<8>(low), high),
            ]
        };
        let ([ca, b], [ca_high, b_high]) = (pairs(whole[0], whole[1]), pairs(whole[2], whole[3]));
        let low = _mm512_set1_epi32(0x0000_ffff);
        let digits = [
            choose(low, _mm512_srli_epi32::<16>(ca), ca_high),
            choose(low, b, _mm512_slli_epi32::<16>(b_high)),
            choose(low, ca, _mm512_slli_epi32::<16>(ca_high)),
        ];
        for (to, digits) in self.0.iter_mut().zip(digits) {
            // SAFETY: `reach`: there is room for a vector.
            unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), digits) };
        }
    }
}

/// The bits of `yes` where the mask has ones, those of `no` elsewhere.
#[inline]
#[target_feature(enable = "avx512f")]
fn choose(mask: __m512i, yes: __m512i, no: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0b1100_1010>(mask, yes, no)
}

/// `65536 a + 256 b + c`.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn number(&[a, b, c]: &[__m512i; DIGITS]) -> __m512 {
    let high = _mm512_add_epi32(_mm512_slli_epi32::<8>(a), b);
    let (high, low) = (_mm512_cvtepi32_ps(high), _mm512_cvtepi32_ps(c));
    _mm512_fmadd_ps(high, _mm512_set1_ps(256.0), low)
}

// What the instructions make of the digits is tested with whole attentions, on all levels: `tests/it/numbers.rs`.
#[cfg(test)]
mod tests {
    use akunu_kernels::case::Rng;

    use super::*;

    /// The largest number has 23 bits. Rounding to a whole one is half of the last, that of the scale, of the factor and of their
    /// product up to half each. With two digits the error would be up to 2^-16.
    #[test]
    fn the_digits_of_a_query_are_as_good_as_a_float() {
        let mut rng = Rng::new(3);
        for size in [1e-30, 1.0, 1e30] {
            let numbers: [f32; SHARED] = rng.floats(SHARED, size).try_into().unwrap();
            let largest_error = f64::from(peak(&numbers)) / f64::from(1 << 22);
            let block = QueryBlock::of(&numbers);
            let [a, b, c] = block.digits.map(|digits| digits.map(i32::from));
            for (i, x) in numbers.into_iter().enumerate() {
                let whole = 65536 * a[i] + 256 * b[i] + c[i];
                let error = f64::from(block.scale) * f64::from(whole) - f64::from(x);
                assert!(error.abs() < largest_error, "{x}: {error:e}");
            }
            let starts = [a, b, c].map(|digits| -128 * digits.iter().sum::<i32>());
            assert_eq!(block.starts, starts);
        }
    }

    /// Zeros and what is too small have no digits, and no scale that is not a number.
    #[test]
    fn next_to_nothing_has_no_digits() {
        for x in [0.0, 1e-40] {
            let block = QueryBlock::of(&[x; SHARED]);
            assert_eq!(block.digits, [[0; SHARED]; DIGITS]);
            assert!(block.scale.is_finite());
        }
        let scales = ValueScales::of(&[0.0; BLOCK]);
        assert_eq!((scales.of_keys, scales.of_sums), ([0.0; BLOCK], 0.0));
    }

    /// Wherever it is. A digit cannot say so, a scale can.
    #[test]
    fn the_scale_of_what_is_not_a_number_is_none() {
        for at in 0..SHARED {
            for nan in [f32::NAN, -f32::NAN] {
                let mut numbers = [3.0; SHARED];
                numbers[at] = nan;
                assert!(QueryBlock::of(&numbers).scale.is_nan());
            }
        }
        for at in 0..BLOCK {
            let mut scales = [3.0; BLOCK];
            scales[at] = f32::NAN;
            assert!(ValueScales::of(&scales).of_sums.is_nan());
        }
    }
}
