//! NEON: 32 registers of 4 floats.

use std::arch::aarch64::*;
use std::arch::asm;

use half::{bf16, f16};

use super::lanes::{Lanes, WithLanes};

/// Does something with these instructions.
#[target_feature(enable = "neon")]
pub(super) fn run<W: WithLanes>(work: W) -> W::Output {
    work.run::<Neon>()
}

/// 4 floats.
#[derive(Clone, Copy)]
pub(super) struct Neon(float32x4_t);

/// `2^n` for whole numbers from -126 to 127.
#[inline]
#[target_feature(enable = "neon")]
fn power_of_two(n: int32x4_t) -> float32x4_t {
    vreinterpretq_f32_s32(vshlq_n_s32::<23>(vaddq_s32(n, vdupq_n_s32(127))))
}

impl Lanes for Neon {
    const N: usize = 4;
    const REGISTERS: usize = 32;

    #[inline(always)]
    fn splat(value: f32) -> Self {
        proved!(Neon(vdupq_n_f32(value)))
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: `reach`: as many floats are there.
        Neon(unsafe { vld1q_f32(from) })
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn load_part(from: *const f32, n: usize) -> Self {
        let mut lanes = [0.0; 4];
        // SAFETY: `reach`: `n` floats are there, fewer than 4.
        unsafe { std::ptr::copy_nonoverlapping(from, lanes.as_mut_ptr(), n) };
        // SAFETY: `reach`: there are four.
        Neon(unsafe { vld1q_f32(lanes.as_ptr()) })
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn load_halves(from: *const f16) -> Self {
        // SAFETY: `reach`: as many halves are there.
        let halves = unsafe { vld1_u16(from.cast()) };
        let floats: float32x4_t;
        // SAFETY: the instruction converts four halves and touches nothing else.
        unsafe {
            asm!("fcvtl {to:v}.4s, {from:v}.4h", to = out(vreg) floats, from = in(vreg) halves,
                 options(pure, nomem, nostack));
        }
        Neon(floats)
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn load_bytes(from: *const i8) -> Self {
        // SAFETY: `reach`: four numbers are there.
        let four = unsafe { from.cast::<u32>().read_unaligned() };
        let wide = vmovl_s8(vcreate_s8(u64::from(four)));
        Neon(vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide))))
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn load_bf16(from: *const bf16) -> Self {
        // SAFETY: `reach`: as many numbers are there.
        let wide = vshll_n_u16::<16>(unsafe { vld1_u16(from.cast()) });
        Neon(vreinterpretq_f32_u32(wide))
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: `reach`: there is room.
        unsafe { vst1q_f32(to, self.0) }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn store_part(self, to: *mut f32, n: usize) {
        let mut lanes = [0.0; 4];
        // SAFETY: `reach`: there is room for four.
        unsafe { vst1q_f32(lanes.as_mut_ptr(), self.0) };
        // SAFETY: `reach`: there is room for `n`, fewer than 4.
        unsafe { std::ptr::copy_nonoverlapping(lanes.as_ptr(), to, n) };
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn store_halves(self, to: *mut f16) {
        let halves: uint16x4_t;
        // SAFETY: the instruction converts four floats and touches nothing else.
        unsafe {
            asm!("fcvtn {to:v}.4h, {from:v}.4s", to = out(vreg) halves, from = in(vreg) self.0,
                 options(pure, nomem, nostack));
        }
        // SAFETY: `reach`: there is room.
        unsafe { vst1_u16(to.cast(), halves) }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        proved!(Neon(vaddq_f32(self.0, other.0)))
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        proved!(Neon(vsubq_f32(self.0, other.0)))
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        proved!(Neon(vmulq_f32(self.0, other.0)))
    }

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        proved!(Neon(vdivq_f32(self.0, other.0)))
    }

    #[inline(always)]
    fn fma(self, factor: Self, addend: Self) -> Self {
        proved!(Neon(vfmaq_f32(addend.0, self.0, factor.0)))
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        proved!(Neon(vmaxnmq_f32(self.0, other.0)))
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        proved!(Neon(vminnmq_f32(self.0, other.0)))
    }

    #[inline(always)]
    fn round(self) -> Self {
        proved!(Neon(vrndnq_f32(self.0)))
    }

    /// In two steps, so that results beyond the normal numbers come out right.
    #[inline(always)]
    fn scale(self, n: Self) -> Self {
        proved!({
            let n = vcvtnq_s32_f32(n.0);
            let half = vshrq_n_s32::<1>(n);
            let once = vmulq_f32(self.0, power_of_two(half));
            Neon(vmulq_f32(once, power_of_two(vsubq_s32(n, half))))
        })
    }

    #[inline(always)]
    fn if_less(self, limit: Self, then: Self, otherwise: Self) -> Self {
        proved!(Neon(vbslq_f32(
            vcltq_f32(self.0, limit.0),
            then.0,
            otherwise.0
        )))
    }

    #[inline(always)]
    fn swap_pairs(self) -> Self {
        proved!(Neon(vrev64q_f32(self.0)))
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        proved!(vaddvq_f32(self.0))
    }

    #[inline(always)]
    fn largest(self) -> f32 {
        proved!(vmaxnmvq_f32(self.0))
    }

    #[inline(always)]
    fn sums([a, b, c, d]: [Self; 4]) -> [f32; 4] {
        proved!({
            let four = vpaddq_f32(vpaddq_f32(a.0, b.0), vpaddq_f32(c.0, d.0));
            let mut sums = [0.0; 4];
            vst1q_f32(sums.as_mut_ptr(), four);
            sums
        })
    }
}
