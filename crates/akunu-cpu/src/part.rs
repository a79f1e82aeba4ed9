//! The share of a dispatch that one thread does.

use std::ops::Range;

use bytemuck::{AnyBitPattern, NoUninit};

use crate::barrier::Barrier;
use crate::matmul::Activations;

/// One thread's share.
pub(crate) struct Part<'a> {
    /// Which one, from 0.
    pub index: usize,
    /// How many there are.
    pub count: usize,
    barrier: &'a Barrier,
    /// What the tiles that all parts share were made of since the last barrier of the plan.
    #[cfg(target_arch = "x86_64")]
    pub tiled: Option<crate::matmul::tiled::Tiled>,
    /// Memory of the thread's own.
    pub scratch: &'a mut Scratch,
}

impl<'a> Part<'a> {
    pub fn new(index: usize, count: usize, barrier: &'a Barrier, scratch: &'a mut Scratch) -> Self {
        Part {
            index,
            count,
            barrier,
            #[cfg(target_arch = "x86_64")]
            tiled: None,
            scratch,
        }
    }

    /// This part's share of `items` things: contiguous, as even as possible, and together all of them.
    pub fn range(&self, items: usize) -> Range<usize> {
        let start = |part: usize| items * part / self.count;
        start(self.index)..start(self.index + 1)
    }

    /// Waits until all parts are here, between dispatches: what was made of their inputs may be stale then.
    pub fn wait_between_dispatches(&mut self) {
        #[cfg(target_arch = "x86_64")]
        {
            self.tiled = None;
        }
        self.wait();
    }

    /// Waits until all parts are here. Every part of the dispatch must call it as often.
    pub fn wait(&self) {
        self.barrier.wait();
    }
}

/// Memory that a thread reuses for every kernel. What it holds at first is unspecified.
#[derive(Default)]
pub(crate) struct Scratch {
    lines: Vec<CacheLine>,
    /// The vectors of a product.
    pub vectors: Vec<f32>,
    /// The same as 8-bit numbers.
    pub activations: Vec<Activations>,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct CacheLine {
    _bytes: [u8; 64],
}

impl Scratch {
    /// `n` elements, aligned to 64 bytes.
    pub fn take<T: AnyBitPattern + NoUninit>(&mut self, n: usize) -> &mut [T] {
        const { assert!(align_of::<T>() <= align_of::<CacheLine>()) };
        let n_lines = (n * size_of::<T>()).div_ceil(size_of::<CacheLine>());
        if self.lines.len() < n_lines {
            self.lines.resize(n_lines, CacheLine { _bytes: [0; 64] });
        }
        // SAFETY: as many bytes are there, initialised, aligned to more than `T` wants, and borrowed
        // mutably with `self`; any bits are a `T`, and a `T` has no bits that bytes may not have.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast::<T>(), n) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_everything_once() {
        let barrier = Barrier::new(1);
        for count in 1..5 {
            for items in [0, 1, 2, 3, 7, 100] {
                let mut next = 0;
                for index in 0..count {
                    let mut scratch = Scratch::default();
                    let range = Part::new(index, count, &barrier, &mut scratch).range(items);
                    assert_eq!(range.start, next);
                    assert!(range.len() <= items.div_ceil(count));
                    next = range.end;
                }
                assert_eq!(next, items);
            }
        }
    }

    #[test]
    fn scratch_grows_and_is_aligned() {
        let mut scratch = Scratch::default();
        scratch.take::<u8>(3).fill(7);
        let floats = scratch.take::<f32>(1000);
        floats.fill(1.0);
        assert_eq!((floats.len(), floats.as_ptr().addr() % 64), (1000, 0));
    }
}
