//! Vectors of `f32`, so that each kernel is written once and compiled for every level of instructions.
//!
//! [`Lanes`] is a vector register. What is to be done is a type with [`WithLanes`], generic over it; each level has a
//! function `run` that is compiled with that level's instructions and into which the work is inlined. So everything on
//! the way must be `#[inline(always)]`: a function that is not inlined would be compiled without the instructions.
//!
//! There is no scalar implementation: the scalar form of a kernel is its twin.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
#[cfg(test)]
mod contract;
mod math;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
#[cfg(target_arch = "x86_64")]
pub(crate) mod transpose;

pub(crate) use math::{exp, gelu, gelu_erf, silu, tanh};

/// A vector register of `N` floats.
///
/// # Safety
/// All functions: the CPU has the instructions, which it has in [`WithLanes::run`], and pointers point at as
/// many elements as are loaded or stored. Nothing needs to be aligned.
pub(crate) trait Lanes: Copy {
    /// Number of floats.
    const N: usize;
    /// Number of registers: how many values a loop may keep.
    const REGISTERS: usize;

    /// The same value everywhere.
    unsafe fn splat(value: f32) -> Self;
    /// `N` floats.
    unsafe fn load(from: *const f32) -> Self;
    /// `n` floats, fewer than `N`; the others are 0.
    unsafe fn load_part(from: *const f32, n: usize) -> Self;
    /// `N` halves.
    unsafe fn load_halves(from: *const half::f16) -> Self;
    /// `N` whole numbers of 8 bits.
    unsafe fn load_bytes(from: *const i8) -> Self;
    /// `N` bf16 numbers.
    unsafe fn load_bf16(from: *const half::bf16) -> Self;
    /// Stores all.
    unsafe fn store(self, to: *mut f32);
    /// Stores the first `n`, fewer than `N`.
    unsafe fn store_part(self, to: *mut f32, n: usize);
    /// Stores all as halves, rounded to the nearest.
    unsafe fn store_halves(self, to: *mut half::f16);

    /// `self + other`.
    unsafe fn add(self, other: Self) -> Self;
    /// `self - other`.
    unsafe fn sub(self, other: Self) -> Self;
    /// `self * other`.
    unsafe fn mul(self, other: Self) -> Self;
    /// `self / other`.
    unsafe fn div(self, other: Self) -> Self;
    /// `self * factor + addend`, rounded once.
    unsafe fn fma(self, factor: Self, addend: Self) -> Self;
    /// The larger of each two; `other` where `self` is NaN.
    unsafe fn max(self, other: Self) -> Self;
    /// The smaller of each two; `other` where `self` is NaN.
    unsafe fn min(self, other: Self) -> Self;
    /// The nearest whole number.
    unsafe fn round(self) -> Self;
    /// `self * 2^n` for whole numbers `n` between -250 and 250.
    unsafe fn scale(self, n: Self) -> Self;
    /// `then` where `self < limit`, `otherwise` elsewhere.
    unsafe fn if_less(self, limit: Self, then: Self, otherwise: Self) -> Self;
    /// Neighbours exchanged: 1, 0, 3, 2, …
    unsafe fn swap_pairs(self) -> Self;

    /// The sum of all.
    unsafe fn sum(self) -> f32;
    /// The largest of all.
    unsafe fn largest(self) -> f32;
    /// The sum of each of four vectors.
    unsafe fn sums(four: [Self; 4]) -> [f32; 4];
}

/// Asks for the cache line at an address, which may be any.
#[inline(always)]
pub(crate) fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every 64-bit x86 CPU has the instruction, and it never fails.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast())
    };
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{at}]", at = in(reg) at, options(nostack, readonly))
    };
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = at;
}

/// Something to do, with any vectors.
pub(crate) trait WithLanes {
    /// What comes of it.
    type Output;

    /// Does it. Implementations are `#[inline(always)]`.
    ///
    /// # Safety
    /// The CPU has the instructions of `L`.
    unsafe fn run<L: Lanes>(self) -> Self::Output;
}
