//! Kernels that are written once for all levels of instructions.

use std::marker::PhantomData;

use crate::call::Call;
use crate::part::Part;
use crate::simd::{self, Lanes, WithLanes};

/// A kernel, for any vectors.
pub(crate) trait Body {
    /// Does one part of a dispatch. Implementations are `#[inline(always)]`.
    fn run<L: Lanes>(call: &Call, part: &mut Part);
}

/// One part of a dispatch of a kernel.
struct Share<'a, 'c, 'p, B> {
    call: &'a Call<'c>,
    part: &'a mut Part<'p>,
    body: PhantomData<B>,
}

impl<B: Body> WithLanes for Share<'_, '_, '_, B> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        B::run::<L>(self.call, self.part);
    }
}

/// The kernel with this body, for every level that has vectors.
pub(crate) fn kernel<B: Body>(call: &Call, part: &mut Part) {
    let share = Share::<B> {
        call,
        part,
        body: PhantomData,
    };
    simd::run(call.level, share);
}
