//! Blocks of vectors as two digits, multiplied by `sdot`.
//!
//! A number of x is `v = 256 q + r`; its digits are bytes, and so are the weights, four columns of four rows in a register:
//!
//! ```text
//! Σ w v = (Σ w q) << 8 + Σ w r
//! ```
//!
//! All of the first digits are summed before the second ones, so that both have the same registers.

use std::arch::aarch64::*;
use std::arch::asm;
use std::ops::Range;

use super::block::{self, BlockDot};
use super::cell::Layout;
use super::gemv::FOURS;
use super::int16_cell::{DIGIT, Int16Block, WORDS};
use super::multiply::Sdot;
use crate::matmul::activation::Values;
use crate::matmul::blocked_gemm::Group;

impl BlockDot for Sdot {
    /// Of each four columns, all rows: byte 4 n + i of vector `four` is column i of row 4 `four` + n.
    type Numbers = [[[i8; 16]; FOURS]; DIGIT];

    fn words(values: &Values) -> [u32; WORDS] {
        values.words()
    }

    #[inline(always)]
    unsafe fn put(numbers: [int8x16_t; 8], four: usize, to: *mut Self::Numbers) {
        for (j, numbers) in numbers.into_iter().enumerate() {
            // SAFETY: passes on `level` and `reach`.
            unsafe { vst1q_s8((&raw mut (*to)[j][four]).cast(), numbers) };
        }
    }

    #[inline(always)]
    unsafe fn dots<const N: usize, const M: usize>(
        numbers: *const Self::Numbers,
        first: usize,
        x: *const Int16Block<M>,
        columns: Range<usize>,
    ) -> [[int32x4_t; N]; M] {
        let steps = columns.start / 4..columns.end / 4;
        // SAFETY: passes on `level` and `reach`.
        unsafe {
            let mut sums = [[vdupq_n_s32(0); N]; M];
            let [q, r] = [0, DIGIT].map(|digit| (&raw const (*x).words[digit]));
            add_digit(&mut sums, (numbers, first), q, steps.clone());
            for sums in &mut sums {
                for sum in sums {
                    *sum = vshlq_n_s32::<8>(*sum);
                }
            }
            add_digit(&mut sums, (numbers, first), r, steps);
            sums
        }
    }

    #[target_feature(enable = "neon,dotprod")]
    unsafe fn multiply<S: Layout, const LESS_128: bool, const M: usize>(
        group: Group,
        x: *const Int16Block<M>,
        n_cells: usize,
    ) {
        // SAFETY: passes on `level` and `reach`.
        unsafe { block::multiply::<Self, S, LESS_128, M>(group, x, n_cells) }
    }
}

/// Adds the products with one digit of the vectors, eight columns at a time: they have 2 `M` words, which are up to three
/// registers.
///
/// # Safety
/// That of [`BlockDot::dots`].
#[inline(always)]
unsafe fn add_digit<const N: usize, const M: usize>(
    sums: &mut [[int32x4_t; N]; M],
    (numbers, first): (*const <Sdot as BlockDot>::Numbers, usize),
    words: *const [u32; M],
    steps: Range<usize>,
) {
    // SAFETY: passes on `level` and `reach`.
    unsafe {
        for j in steps.step_by(2) {
            let words = words.add(j).cast::<i8>();
            let x = [0, 16, 32].map(|at| vld1q_s8(words.add(at)));
            let at = (&raw const (*numbers)[j]).cast::<i8>().add(16 * first);
            let mut numbers = [vdupq_n_s8(0); N];
            // The lane is part of the instruction, so that a macro counts the words.
            macro_rules! add_words {
                ($($word:literal)*) => {$(
                    if $word < 2 * M {
                        let (step, m) = ($word / M, $word % M);
                        for i in 0..N {
                            if m == 0 {
                                numbers[i] = vld1q_s8(at.add(64 * step + 16 * i));
                            }
                        }
                        for i in 0..N {
                            sums[m][i] = sdot::<{ $word % 4 }>(sums[m][i], numbers[i], x[$word / 4]);
                        }
                    }
                )*};
            }
            add_words!(0 1 2 3 4 5 6 7 8 9 10 11);
        }
    }
}

/// `sums[n] += Σ numbers[4 n + i] * x[4 J + i]`. Not declared as pure, so that it stays between the loads before and after it:
/// the compiler would move loads ahead for which there are no registers.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn sdot<const J: u32>(mut sums: int32x4_t, numbers: int8x16_t, x: int8x16_t) -> int32x4_t {
    // SAFETY: the instruction reads and writes these registers only.
    unsafe {
        asm!("sdot {sums:v}.4s, {numbers:v}.16b, {x:v}.4b[{j}]", sums = inout(vreg) sums,
             numbers = in(vreg) numbers, x = in(vreg) x, j = const J, options(nomem, nostack, preserves_flags));
    }
    sums
}
