//! Quantising activations as two bytes, with NEON.

use std::arch::aarch64::*;

use crate::matmul::activation::{HALF, LARGEST, ScaleAndSums, Values, scale_and_inverse};
use crate::panels::format::CELL;

/// `v = round(x / scale)`, `q = round(v / 256)`, `r = v - 256 q`. A rest of -128, whose square is too large for the
/// sums of 16 bits, is rounded to -127.
#[inline]
#[target_feature(enable = "neon")]
pub fn quantise_cell(x: &[f32; CELL], Values(values): &mut Values) -> ScaleAndSums {
    // SAFETY: `reach`: four of 32 floats.
    let floats = |i: usize| unsafe { vld1q_f32(x[4 * i..][..4].as_ptr()) };
    // The bits of positive floats are ordered as they are, NaN above all.
    let mut most = vdupq_n_u32(0);
    for i in 0..CELL / 4 {
        most = vmaxq_u32(most, vreinterpretq_u32_f32(vabsq_f32(floats(i))));
    }
    let (scale, inverse) = scale_and_inverse(f32::from_bits(vmaxvq_u32(most)), LARGEST);
    let mut sums = [0; 2];
    for (half, sum) in sums.iter_mut().enumerate() {
        let mut q = [vdupq_n_s32(0); 4];
        let mut r = q;
        let mut all = vdupq_n_s32(0);
        for i in 0..HALF / 4 {
            let v = vcvtnq_s32_f32(vmulq_n_f32(floats(4 * half + i), inverse));
            q[i] = vrshrq_n_s32::<8>(v);
            let of_q = vshlq_n_s32::<8>(q[i]);
            r[i] = vmaxq_s32(vsubq_s32(v, of_q), vdupq_n_s32(-127));
            all = vaddq_s32(all, vaddq_s32(of_q, r[i]));
        }
        *sum = vaddvq_s32(all);
        let to = values[HALF * half..].as_mut_ptr();
        // SAFETY: `reach`: sixteen of the first 32 bytes, and sixteen of the last.
        unsafe {
            vst1q_s8(to, bytes(q));
            vst1q_s8(to.add(CELL), bytes(r));
        }
    }
    (scale, sums)
}

/// The low bytes of sixteen numbers.
#[inline]
#[target_feature(enable = "neon")]
fn bytes([a, b, c, d]: [int32x4_t; 4]) -> int8x16_t {
    let low = vcombine_s16(vmovn_s32(a), vmovn_s32(b));
    let high = vcombine_s16(vmovn_s32(c), vmovn_s32(d));
    vcombine_s8(vmovn_s16(low), vmovn_s16(high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use akunu_kernels::case::Rng;

    /// The same, number by number.
    fn one_by_one(x: &[f32; CELL]) -> ([i8; 2 * CELL], ScaleAndSums) {
        let largest = x.iter().fold(0, |most, x| most.max(x.abs().to_bits()));
        let (scale, inverse) = scale_and_inverse(f32::from_bits(largest), LARGEST);
        let (mut values, mut sums) = ([0; 2 * CELL], [0; 2]);
        for (i, x) in x.iter().enumerate() {
            let v = (x * inverse).round_ties_even() as i32;
            let q = (v + 128) >> 8;
            let r = (v - 256 * q).max(-127);
            values[i] = q as i8;
            values[CELL + i] = r as i8;
            sums[i / HALF] += 256 * q + r;
        }
        (values, (scale, sums))
    }

    fn check(x: [f32; CELL]) {
        let mut values = Values([1; 2 * CELL]);
        // SAFETY: this is a 64-bit ARM CPU.
        let (scale, sums) = unsafe { quantise_cell(&x, &mut values) };
        let (expected, (expected_scale, expected_sums)) = one_by_one(&x);
        assert_eq!(values.0, expected, "{x:?}");
        assert_eq!(scale.to_bits(), expected_scale.to_bits(), "{x:?}");
        assert_eq!(sums, expected_sums, "{x:?}");
    }

    /// Random numbers, whole numbers, of which 128 has a rest of -128, numbers that are too small, and what is no number.
    #[test]
    fn numbers_are_those_of_the_formula() {
        let mut rng = Rng::new(5);
        let mut random = || -> [f32; CELL] { std::array::from_fn(|_| rng.floats(1, 3.0)[0]) };
        (0..200).for_each(|_| check(random()));
        for first in (-16_383..16_383).step_by(509) {
            let mut x: [f32; CELL] = std::array::from_fn(|i| (first + 17 * i as i32) as f32);
            (x[30], x[31]) = (128.0, 16_383.0);
            check(x);
        }
        for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, 1e-42, 3e38] {
            let mut x = random();
            x[7] = wrong;
            check(x);
            check([wrong; CELL]);
        }
    }
}
