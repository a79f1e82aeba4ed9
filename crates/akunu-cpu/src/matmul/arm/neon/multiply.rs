//! Products of signed bytes, summed: the one thing that ARM CPUs do in two ways.

use std::arch::aarch64::*;
use std::arch::asm;

/// A way to multiply.
///
/// # Safety
/// All functions, `level`: that of the instructions.
pub trait Multiply: Sized {
    /// `sums` of four rows, plus the products of sixteen of their columns with as many activations. Byte 4 n + i of
    /// vector j is column 4 j + i of row n.
    unsafe fn add_products<const BITS: u32>(
        sums: int32x4_t,
        numbers: [int8x16_t; 4],
        x: int8x16_t,
    ) -> int32x4_t;
}

/// The dot-product instructions: four products of each row at once.
pub struct Sdot;

impl Multiply for Sdot {
    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    unsafe fn add_products<const BITS: u32>(
        sums: int32x4_t,
        [a, b, c, d]: [int8x16_t; 4],
        x: int8x16_t,
    ) -> int32x4_t {
        let sums = sdot::<0>(sums, a, x);
        let sums = sdot::<1>(sums, b, x);
        let sums = sdot::<2>(sums, c, x);
        sdot::<3>(sums, d, x)
    }
}

/// `sums[n] += Σ numbers[4 n + i] * x[4 J + i]`: an instruction that std does not offer yet.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn sdot<const J: u32>(mut sums: int32x4_t, numbers: int8x16_t, x: int8x16_t) -> int32x4_t {
    // SAFETY: the instruction reads and writes these registers only.
    unsafe {
        asm!("sdot {sums:v}.4s, {numbers:v}.16b, {x:v}.4b[{j}]", sums = inout(vreg) sums,
             numbers = in(vreg) numbers, x = in(vreg) x, j = const J, options(pure, nomem, nostack));
    }
    sums
}

/// Products in 16 bits, which every CPU has.
pub struct Smull;

impl Smull {
    /// How many products an i16 has room for: `4 * 63 * 127` and `2 * 128 * 127` are below 2¹⁵.
    const fn room(bits: u32) -> usize {
        if bits == 8 { 2 } else { 4 }
    }
}

impl Multiply for Smull {
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn add_products<const BITS: u32>(
        mut sums: int32x4_t,
        numbers: [int8x16_t; 4],
        x: int8x16_t,
    ) -> int32x4_t {
        let x = fours(x);
        for first in (0..4).step_by(Self::room(BITS)) {
            // The first two rows, and the last two.
            let mut low = vmull_s8(vget_low_s8(numbers[first]), vget_low_s8(x[first]));
            let mut high = vmull_high_s8(numbers[first], x[first]);
            for j in first + 1..first + Self::room(BITS) {
                low = vmlal_s8(low, vget_low_s8(numbers[j]), vget_low_s8(x[j]));
                high = vmlal_high_s8(high, numbers[j], x[j]);
            }
            let of_rows = vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high));
            sums = vaddq_s32(sums, of_rows);
        }
        sums
    }
}

/// Vector j holds bytes 4 j to 4 j + 3 four times.
#[inline]
#[target_feature(enable = "neon")]
fn fours(x: int8x16_t) -> [int8x16_t; 4] {
    let words = vreinterpretq_s32_s8(x);
    [
        vreinterpretq_s8_s32(vdupq_laneq_s32::<0>(words)),
        vreinterpretq_s8_s32(vdupq_laneq_s32::<1>(words)),
        vreinterpretq_s8_s32(vdupq_laneq_s32::<2>(words)),
        vreinterpretq_s8_s32(vdupq_laneq_s32::<3>(words)),
    ]
}
