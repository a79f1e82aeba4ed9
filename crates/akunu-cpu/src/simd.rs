//! Vectors of `f32`, so that each kernel is written once and compiled for every level of instructions.
//!
//! [`Lanes`] is a vector register. What is to be done is a type with [`WithLanes`], generic over it; [`run`] calls it with
//! the vectors of a level, compiled with that level's instructions, into which the work is inlined. So everything on
//! the way must be `#[inline(always)]`: a function that is not inlined would be compiled without the instructions.
//!
//! A type that is `Lanes` proves that the CPU has its instructions: the types are private to this module, and [`run`] alone
//! hands them out, to whom shows a [`Level`].
//!
//! There is no scalar implementation: the scalar form of a kernel is its twin.

/// Calls functions that are compiled with the instructions of the vectors at hand.
macro_rules! proved {
    ($call:expr) => {
        // SAFETY: `level`: the vectors are only handed out where the CPU has their instructions (`simd::run`). No function
        // here touches memory, but for arrays of its own that are as long as a vector.
        unsafe { $call }
    };
}

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(test)]
mod contract;
mod lanes;
mod math;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
pub(crate) mod transpose;

use crate::isa::{Isa, Level};

pub(crate) use lanes::{Lanes, WithLanes};
pub(crate) use math::{exp, gelu, gelu_erf, sigmoid, silu, tanh};

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

/// How many floats a vector of a level has.
pub(crate) fn lanes(level: Level) -> usize {
    struct Width;
    impl WithLanes for Width {
        type Output = usize;

        #[inline(always)]
        fn run<L: Lanes>(self) -> usize {
            L::N
        }
    }
    run(level, Width)
}

/// Does something with the vectors of a level. Kernels of [`Isa::Scalar`], which has none, are twins.
pub(crate) fn run<W: WithLanes>(level: Level, work: W) -> W::Output {
    match level.isa() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `level` is the proof that the CPU has AVX-512.
        Isa::Amx | Isa::Avx512 => unsafe { avx512::run(work) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `level` is the proof that the CPU has AVX2, FMA and F16C.
        Isa::AvxVnni | Isa::Avx2 => unsafe { avx2::run(work) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: `level` is the proof that the CPU has NEON.
        Isa::Neon | Isa::Dotprod | Isa::I8mm => unsafe { neon::run(work) },
        other => unreachable!("{other} has no vectors"),
    }
}
