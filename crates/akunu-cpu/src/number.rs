//! Floating-point numbers in memory, and the f32 that is computed with.

use bytemuck::AnyBitPattern;
use half::{bf16, f16};

use crate::simd::Lanes;

/// The most lanes of a vector.
const MAX_LANES: usize = 16;

/// A number of a matrix.
///
/// # Safety
/// `reach`: that of [`Lanes`].
pub(crate) trait Number: AnyBitPattern {
    /// Widens `L::N` numbers.
    unsafe fn load<L: Lanes>(from: *const Self) -> L;

    /// The number as f32.
    fn wide(self) -> f32;

    /// Widens `n` numbers, fewer than `L::N`; the others are 0.
    #[inline(always)]
    unsafe fn load_part<L: Lanes>(from: *const Self, n: usize) -> L {
        const { assert!(L::N <= MAX_LANES) };
        let mut wide = [0f32; MAX_LANES];
        for (at, wide) in wide.iter_mut().enumerate().take(n) {
            // SAFETY: `reach`: `n` numbers are there, which need not be aligned.
            *wide = unsafe { from.add(at).read_unaligned() }.wide();
        }
        // SAFETY: passes on `reach`.
        unsafe { L::load(wide.as_ptr()) }
    }
}

impl Number for f16 {
    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const f16) -> L {
        // SAFETY: passes on `reach`.
        unsafe { L::load_halves(from) }
    }

    fn wide(self) -> f32 {
        self.to_f32()
    }
}

impl Number for bf16 {
    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const bf16) -> L {
        // SAFETY: passes on `reach`.
        unsafe { L::load_bf16(from) }
    }

    fn wide(self) -> f32 {
        self.to_f32()
    }
}

impl Number for f32 {
    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const f32) -> L {
        // SAFETY: passes on `reach`.
        unsafe { L::load(from) }
    }

    fn wide(self) -> f32 {
        self
    }

    #[inline(always)]
    unsafe fn load_part<L: Lanes>(from: *const f32, n: usize) -> L {
        // SAFETY: passes on `reach`.
        unsafe { L::load_part(from, n) }
    }
}
