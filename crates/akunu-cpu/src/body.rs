//! Kernels that are written once for all levels of instructions.

use std::marker::PhantomData;

use crate::call::{Call, Kernel};
use crate::isa::Isa;
use crate::part::Part;
use crate::simd::{self, Lanes, WithLanes};
use crate::twin;

/// A kernel, for any vectors.
pub(crate) trait Body {
    /// Does one part of a dispatch. Implementations are `#[inline(always)]`.
    ///
    /// # Safety
    /// The CPU has the instructions of `L`.
    unsafe fn run<L: Lanes>(call: &Call, part: &mut Part);
}

/// One part of a dispatch of a kernel.
struct Share<'a, 'c, 'p, B> {
    call: &'a Call<'c>,
    part: &'a mut Part<'p>,
    body: PhantomData<B>,
}

impl<'a, 'c, 'p, B> Share<'a, 'c, 'p, B> {
    fn new(call: &'a Call<'c>, part: &'a mut Part<'p>) -> Self {
        Share {
            call,
            part,
            body: PhantomData,
        }
    }
}

impl<B: Body> WithLanes for Share<'_, '_, '_, B> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        // SAFETY: by the caller's promise the CPU has the instructions.
        unsafe { B::run::<L>(self.call, self.part) }
    }
}

/// The kernel with this body at a level of instructions that the machine has.
pub(crate) fn kernel<B: Body>(isa: Isa) -> Kernel {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Amx | Isa::Avx512 => |call, part| {
            // SAFETY: a device is only made with instructions that the machine has.
            unsafe { simd::avx512::run(Share::<B>::new(call, part)) }
        },
        #[cfg(target_arch = "x86_64")]
        Isa::AvxVnni | Isa::Avx2 => |call, part| {
            // SAFETY: as above.
            unsafe { simd::avx2::run(Share::<B>::new(call, part)) }
        },
        #[cfg(target_arch = "aarch64")]
        Isa::Neon | Isa::Dotprod | Isa::I8mm => |call, part| {
            // SAFETY: every 64-bit ARM CPU has NEON.
            unsafe { simd::neon::run(Share::<B>::new(call, part)) }
        },
        _ => twin::run,
    }
}
