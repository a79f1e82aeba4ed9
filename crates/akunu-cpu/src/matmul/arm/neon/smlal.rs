//! Blocks of vectors as 16-bit words, multiplied by `smlal`: for processors without `sdot`.
//!
//! A word of 32 bits is two columns. A register of weights has the first of them of four rows, then the second.

use std::arch::aarch64::*;
use std::arch::asm;
use std::ops::Range;

use super::block::{self, BlockDot};
use super::cell::Layout;
use super::gemv::FOURS;
use super::int16_cell::{Int16Block, WORDS};
use super::multiply::Smull;
use crate::matmul::activation::Values;
use crate::matmul::blocked_gemm::Group;
use crate::panels::format::CELL;

/// Row n of column i of four columns of four rows, which are in byte 4 n + i, is brought to byte 4 i + n.
const TURN: [u8; 16] = [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];

impl BlockDot for Smull {
    /// Of each two columns, all rows.
    type Numbers = [[[i16; 8]; FOURS]; WORDS];

    fn words(Values(values): &Values) -> [u32; WORDS] {
        let v = |i: usize| 256 * i32::from(values[i]) + i32::from(values[CELL + i]);
        std::array::from_fn(|k| (v(2 * k) & 0xffff | v(2 * k + 1) << 16).cast_unsigned())
    }

    #[inline(always)]
    unsafe fn put(numbers: [int8x16_t; 8], four: usize, to: *mut Self::Numbers) {
        // SAFETY: passes on `level` and `reach`.
        unsafe {
            let turn = vld1q_u8(TURN.as_ptr());
            for (j, numbers) in numbers.into_iter().enumerate() {
                let columns = vqtbl1q_s8(numbers, turn);
                let pairs = [vmovl_s8(vget_low_s8(columns)), vmovl_high_s8(columns)];
                vst1q_s16((&raw mut (*to)[2 * j][four]).cast(), pairs[0]);
                vst1q_s16((&raw mut (*to)[2 * j + 1][four]).cast(), pairs[1]);
            }
        }
    }

    /// Two words of each vector at a time: they are in up to three registers.
    #[inline(always)]
    unsafe fn dots<const N: usize, const M: usize>(
        numbers: *const Self::Numbers,
        first: usize,
        x: *const Int16Block<M>,
        columns: Range<usize>,
    ) -> [[int32x4_t; N]; M] {
        // SAFETY: passes on `level` and `reach`.
        unsafe {
            let mut sums = [[vdupq_n_s32(0); N]; M];
            for j in (columns.start / 2..columns.end / 2).step_by(2) {
                let words = (&raw const (*x).words[j]).cast::<i16>();
                let x = [0, 8, 16].map(|at| vld1q_s16(words.add(at)));
                let at = (&raw const (*numbers)[j][first]).cast::<i16>();
                let mut numbers = [vdupq_n_s16(0); N];
                // The lane is part of the instruction, so that a macro counts the words.
                macro_rules! add_words {
                    ($($word:literal)*) => {$(
                        if $word < 2 * M {
                            let (step, m) = ($word / M, $word % M);
                            for i in 0..N {
                                if m == 0 {
                                    numbers[i] = vld1q_s16(at.add(8 * FOURS * step + 8 * i));
                                }
                            }
                            for i in 0..N {
                                sums[m][i] = smlal::<{ 2 * ($word % 4) }, { 2 * ($word % 4) + 1 }>(
                                    sums[m][i],
                                    numbers[i],
                                    x[$word / 4],
                                );
                            }
                        }
                    )*};
                }
                add_words!(0 1 2 3 4 5 6 7 8 9 10 11);
            }
            sums
        }
    }

    #[target_feature(enable = "neon")]
    unsafe fn multiply<S: Layout, const LESS_128: bool, const M: usize>(
        group: Group,
        x: *const Int16Block<M>,
        n_cells: usize,
    ) {
        // SAFETY: passes on `level` and `reach`.
        unsafe { block::multiply::<Self, S, LESS_128, M>(group, x, n_cells) }
    }
}

/// `sums[n] += numbers[n] * x[J] + numbers[4 + n] * x[K]`. Not declared as pure, so that it stays between the loads before and
/// after it.
#[inline]
#[target_feature(enable = "neon")]
fn smlal<const J: u32, const K: u32>(
    mut sums: int32x4_t,
    numbers: int16x8_t,
    x: int16x8_t,
) -> int32x4_t {
    // SAFETY: the instructions read and write these registers only.
    unsafe {
        asm!("smlal {sums:v}.4s, {numbers:v}.4h, {x:v}.h[{j}]",
             "smlal2 {sums:v}.4s, {numbers:v}.8h, {x:v}.h[{k}]", sums = inout(vreg) sums,
             numbers = in(vreg) numbers, x = in(vreg_low16) x, j = const J, k = const K,
             options(nomem, nostack, preserves_flags));
    }
    sums
}
