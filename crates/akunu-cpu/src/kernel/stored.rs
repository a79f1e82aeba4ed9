//! Keys and values as they are stored, and floats, which they are computed with.
//!
//! In 8 bits a number is `scale * q`: whole numbers are widened in registers, a vector of them lies in one block, and
//! its scale is a float by then.

use akunu_kernels::kernel::pages::{Pages, SlotAt};
use akunu_types::KvFormat;
use akunu_types::kv_format::{Q8_BLOCK, Q8_LARGEST};
use half::f16;

use crate::place::Place;
use crate::simd::Lanes;

/// Elements that share a scale.
const BLOCK: usize = Q8_BLOCK as usize;

/// A format that a loop over keys is compiled for.
pub(super) trait Stored: Copy {
    /// Bytes of a number.
    const BYTES: usize;

    /// Scales of a head.
    fn n_scales(head_dim: usize) -> usize;

    /// `N` numbers from element `d` of a head on.
    ///
    /// # Safety
    /// `reach`: `numbers` and `scales` are those of a head with at least `d + N` elements, and `d` is a multiple of `N`.
    unsafe fn load<L: Lanes>(numbers: *const u8, scales: *const f32, d: usize) -> L;
}

/// [`KvFormat::F16`].
#[derive(Clone, Copy)]
pub(super) struct Halves;

impl Stored for Halves {
    const BYTES: usize = size_of::<f16>();

    fn n_scales(_: usize) -> usize {
        0
    }

    #[inline(always)]
    unsafe fn load<L: Lanes>(numbers: *const u8, _: *const f32, d: usize) -> L {
        // SAFETY: passes on `reach`.
        unsafe { L::load_halves(numbers.cast::<f16>().add(d)) }
    }
}

/// [`KvFormat::Q8`].
#[derive(Clone, Copy)]
pub(super) struct Eights;

impl Stored for Eights {
    const BYTES: usize = 1;

    fn n_scales(head_dim: usize) -> usize {
        head_dim / BLOCK
    }

    #[inline(always)]
    unsafe fn load<L: Lanes>(numbers: *const u8, scales: *const f32, d: usize) -> L {
        // SAFETY: passes on `reach`; vectors are no longer than blocks.
        unsafe { L::load_bytes(numbers.cast::<i8>().add(d)).mul(L::splat(*scales.add(d / BLOCK))) }
    }
}

/// One head of a slot: the bytes of its numbers and of its scales.
#[derive(Clone, Copy)]
pub(super) struct Slot<'a> {
    numbers: &'a [u8],
    scales: &'a [u8],
}

impl<'a> Slot<'a> {
    /// A slot of a pool that nobody writes.
    #[inline(always)]
    pub fn of(pages: &Pages, pool: &'a [u8], at: SlotAt) -> Slot<'a> {
        let [numbers, scales] = sizes(pages);
        Slot {
            numbers: &pool[at.numbers..][..numbers],
            scales: &pool[at.scales..][..scales],
        }
    }

    /// A slot of a pool that is written elsewhere.
    ///
    /// # Safety
    /// That of [`Place::piece`], for this slot.
    pub unsafe fn piece(pages: &Pages, pool: Place<'a>, at: SlotAt) -> Slot<'a> {
        let [numbers, scales] = sizes(pages);
        // SAFETY: passes on `own`.
        unsafe {
            Slot {
                numbers: pool.piece(at.numbers, numbers),
                scales: pool.piece(at.scales, scales),
            }
        }
    }

    /// The elements from `d` on as floats, as many as `to` has room for. Either all elements are asked for, or `d` and
    /// their number are multiples of `N`.
    #[inline(always)]
    pub fn widen<L: Lanes>(self, format: KvFormat, d: usize, to: &mut [f32]) {
        match format {
            KvFormat::F16 => widen_halves::<L>(&self.numbers[2 * d..], to),
            KvFormat::Q8 => {
                let from = &self.numbers[d..][..to.len()];
                for at in (0..to.len()).step_by(L::N) {
                    let scale = &self.scales[2 * ((d + at) / BLOCK)..];
                    let scale = f16::from_le_bytes([scale[0], scale[1]]).to_f32();
                    let to = &mut to[at..][..L::N];
                    // SAFETY: `reach`: there are `N` of both.
                    unsafe {
                        let numbers = L::load_bytes(from[at..][..L::N].as_ptr().cast());
                        numbers.mul(L::splat(scale)).store(to.as_mut_ptr());
                    }
                }
            }
        }
    }
}

/// One head of a slot, to be written.
pub(super) struct SlotMut<'a> {
    numbers: &'a mut [u8],
    scales: &'a mut [u8],
}

impl<'a> SlotMut<'a> {
    /// # Safety
    /// That of [`Place::write`], for this slot.
    pub unsafe fn of(pages: &Pages, pool: Place<'a>, at: SlotAt) -> SlotMut<'a> {
        let [numbers, scales] = sizes(pages);
        // SAFETY: passes on `own`; numbers and scales do not overlap.
        unsafe {
            SlotMut {
                numbers: pool.write(at.numbers, numbers),
                scales: pool.write(at.scales, scales),
            }
        }
    }

    /// Takes over another slot as it is.
    pub fn copy(self, from: Slot) {
        self.numbers.copy_from_slice(from.numbers);
        self.scales.copy_from_slice(from.scales);
    }

    /// Stores a head.
    #[inline(always)]
    pub fn round<L: Lanes>(self, format: KvFormat, from: &[f32]) {
        match format {
            KvFormat::F16 => round_halves::<L>(from, self.numbers),
            KvFormat::Q8 => {
                let blocks = from.as_chunks::<BLOCK>().0.iter();
                let to = self.numbers.as_chunks_mut::<BLOCK>().0.iter_mut();
                let scales = self.scales.as_chunks_mut().0.iter_mut();
                for ((block, to), scale) in blocks.zip(to).zip(scales) {
                    *scale = round_block::<L>(block, to).to_le_bytes();
                }
            }
        }
    }
}

/// Bytes of the numbers and of the scales of one head of a slot.
#[inline(always)]
pub(super) fn sizes(pages: &Pages) -> [usize; 2] {
    let numbers = pages.format.number_bytes(pages.head_dim);
    [
        numbers,
        pages.format.bytes_per_slot(pages.head_dim) - numbers,
    ]
}

/// Halves, as bytes, to as many floats as there is room for.
#[inline(always)]
pub(super) fn widen_halves<L: Lanes>(from: &[u8], to: &mut [f32]) {
    let from = &from.as_chunks().0[..to.len()];
    let whole = to.len() / L::N * L::N;
    for at in (0..whole).step_by(L::N) {
        // SAFETY: `reach`: `N` elements from `at` on are below the length.
        unsafe { L::load_halves(from.as_ptr().add(at).cast()).store(to.as_mut_ptr().add(at)) };
    }
    for (to, &from) in to[whole..].iter_mut().zip(&from[whole..]) {
        *to = f16::from_le_bytes(from).to_f32();
    }
}

/// Floats to halves, as bytes, rounded to the nearest.
#[inline(always)]
pub(super) fn round_halves<L: Lanes>(from: &[f32], to: &mut [u8]) {
    let to = &mut to.as_chunks_mut().0[..from.len()];
    let whole = from.len() / L::N * L::N;
    for at in (0..whole).step_by(L::N) {
        // SAFETY: `reach`: `N` elements from `at` on are below the length.
        unsafe { L::load(from.as_ptr().add(at)).store_halves(to.as_mut_ptr().add(at).cast()) };
    }
    for (to, &from) in to[whole..].iter_mut().zip(&from[whole..]) {
        *to = f16::from_f32(from).to_le_bytes();
    }
}

/// Floats to whole numbers of 8 bits; their scale is the result.
#[inline(always)]
fn round_block<L: Lanes>(from: &[f32; BLOCK], to: &mut [u8; BLOCK]) -> f16 {
    // SAFETY: `reach`: a block is whole vectors.
    unsafe {
        let zero = L::splat(0.0);
        let mut largest = zero;
        for x in from.chunks_exact(L::N) {
            let x = L::load(x.as_ptr());
            largest = x.max(zero.sub(x)).max(largest);
        }
        let scale = f16::from_f32(largest.largest() / Q8_LARGEST);
        if scale == f16::ZERO {
            to.fill(0);
            return scale;
        }
        let mut numbers = [0.0; BLOCK];
        let limit = L::splat(Q8_LARGEST);
        for (x, q) in from.chunks_exact(L::N).zip(numbers.chunks_exact_mut(L::N)) {
            let q_exact = L::load(x.as_ptr()).div(L::splat(scale.to_f32()));
            let whole = q_exact.round().min(limit).max(zero.sub(limit));
            whole.store(q.as_mut_ptr());
        }
        for (to, q) in to.iter_mut().zip(numbers) {
            *to = q as i8 as u8;
        }
        scale
    }
}
