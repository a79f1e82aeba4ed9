//! Blocks of vectors as two digits, multiplied by `smmla`: two rows of weights times two vectors, eight columns at a time.
//!
//! As in [`super::sdot`] the first digits are summed before the second ones, but an instruction has twice as many products:
//!
//! ```text
//! sums[2 v + w] += Σ x[8 v + i] * numbers[8 w + i]     two vectors v, two rows w, eight columns i
//! ```
//!
//! At the end the sums of four rows with one vector are brought together.

use std::arch::aarch64::*;
use std::arch::asm;
use std::ops::Range;

use super::block::{self, BlockDot};
use super::cell::Layout;
use super::gemv::FOURS;
use super::int16_cell::{DIGIT, Int16Block, WORDS};
use crate::matmul::activation::Values;
use crate::matmul::blocked_gemm::{Group, MOST_NEON};

/// The matrix instructions.
pub struct Smmla;

/// Pairs of vectors of a block.
const PAIRS: usize = MOST_NEON / 2;
/// The sums of 4 `N` rows with each pair of vectors. The second vector of the last pair may be none of the block.
type Sums<const N: usize> = [[[int32x4_t; 2]; PAIRS]; N];
/// Eight columns of two rows.
type RowPair = [i8; 16];

impl BlockDot for Smmla {
    /// Of each eight columns, all rows.
    type Numbers = [[[RowPair; 2]; FOURS]; DIGIT / 2];

    fn words(values: &Values) -> [u32; WORDS] {
        values.words()
    }

    /// Both words of eight columns lie side by side.
    #[inline(always)]
    fn lay(words: &[u32; WORDS], (vector, n_vectors): (usize, usize), block: &mut [u32]) {
        let units = block.chunks_exact_mut(2 * n_vectors);
        for (unit, both) in units.zip(words.as_chunks::<2>().0) {
            unit[2 * vector..][..2].copy_from_slice(both);
        }
    }

    #[inline(always)]
    unsafe fn put(numbers: [int8x16_t; 8], four: usize, to: *mut Self::Numbers) {
        // SAFETY: passes on `level` and `reach`.
        unsafe {
            for (unit, numbers) in numbers.as_chunks::<2>().0.iter().enumerate() {
                let [a, b] = numbers.map(|numbers| vreinterpretq_s32_s8(numbers));
                let to = (&raw mut (*to)[unit][four]).cast::<i32>();
                vst1q_s32(to, vzip1q_s32(a, b));
                vst1q_s32(to.add(4), vzip2q_s32(a, b));
            }
        }
    }

    #[inline(always)]
    unsafe fn dots<const N: usize, const M: usize>(
        numbers: *const Self::Numbers,
        first: usize,
        x: *const Int16Block<M>,
        columns: Range<usize>,
    ) -> [[int32x4_t; N]; M] {
        let units = columns.start / 8..columns.end / 8;
        // SAFETY: passes on `level` and `reach`.
        unsafe {
            let zero = vdupq_n_s32(0);
            let mut sums = [[[zero; 2]; PAIRS]; N];
            let [q, r] = [0, DIGIT].map(|digit| &raw const (*x).words[digit]);
            add_digit::<N, M>(&mut sums, (numbers, first), q, units.clone());
            for sum in sums.as_flattened_mut().as_flattened_mut() {
                *sum = vshlq_n_s32::<8>(*sum);
            }
            add_digit::<N, M>(&mut sums, (numbers, first), r, units);
            let mut of_vectors = [[zero; N]; M];
            for m in 0..M {
                for i in 0..N {
                    let [low, high] = sums[i][m / 2].map(|sum| vreinterpretq_s64_s32(sum));
                    let rows = match m % 2 {
                        0 => vzip1q_s64(low, high),
                        _ => vzip2q_s64(low, high),
                    };
                    of_vectors[m][i] = vreinterpretq_s32_s64(rows);
                }
            }
            of_vectors
        }
    }

    #[target_feature(enable = "neon,i8mm")]
    unsafe fn multiply<S: Layout, const LESS_128: bool, const M: usize>(
        group: Group,
        x: *const Int16Block<M>,
        n_cells: usize,
    ) {
        // SAFETY: passes on `level` and `reach`.
        unsafe { block::multiply::<Self, S, LESS_128, M>(group, x, n_cells) }
    }
}

/// Adds the products with one digit of the vectors, eight columns at a time. The weights of the next four rows are loaded before
/// those at hand are multiplied.
///
/// # Safety
/// That of [`BlockDot::dots`].
#[inline(always)]
unsafe fn add_digit<const N: usize, const M: usize>(
    sums: &mut Sums<N>,
    (numbers, first): (*const <Smmla as BlockDot>::Numbers, usize),
    words: *const [u32; M],
    units: Range<usize>,
) {
    // SAFETY: passes on `level` and `reach`.
    unsafe {
        for unit in units {
            let words = words.add(2 * unit).cast::<i8>();
            let x: [int8x16_t; PAIRS] = [0, 16, 32].map(|at| vld1q_s8(words.add(at)));
            let at = (&raw const (*numbers)[unit][first]).cast::<i8>();
            let mut next = [vld1q_s8(at), vld1q_s8(at.add(16))];
            for (i, sums) in sums.iter_mut().enumerate() {
                let rows = next;
                if i + 1 < N {
                    let at = at.add(32 * (i + 1));
                    next = [vld1q_s8(at), vld1q_s8(at.add(16))];
                }
                for ([low, high], x) in sums.iter_mut().zip(x).take(M.div_ceil(2)) {
                    *low = smmla(*low, x, rows[0]);
                    *high = smmla(*high, x, rows[1]);
                }
            }
        }
    }
}

/// `sums[2 v + w] += Σ x[8 v + i] * numbers[8 w + i]`: an instruction that std does not offer yet. Not declared as pure, so that
/// it stays between the loads before and after it.
#[inline]
#[target_feature(enable = "neon,i8mm")]
fn smmla(mut sums: int32x4_t, x: int8x16_t, numbers: int8x16_t) -> int32x4_t {
    // SAFETY: the instruction reads and writes these registers only.
    unsafe {
        asm!("smmla {sums:v}.4s, {x:v}.16b, {numbers:v}.16b", sums = inout(vreg) sums,
             x = in(vreg) x, numbers = in(vreg) numbers, options(nomem, nostack, preserves_flags));
    }
    sums
}
