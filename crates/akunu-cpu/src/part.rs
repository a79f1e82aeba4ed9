//! The share of a dispatch that one thread does.

use std::cell::UnsafeCell;
use std::ops::Range;

use bytemuck::{AnyBitPattern, NoUninit};

use crate::barrier::Barrier;
use crate::kernel::rotation::Rotations;
use crate::matmul::{Activations, Quantised};

/// What the threads of a pool share.
pub(crate) struct Team {
    pub barrier: Barrier,
    outboxes: Vec<Outbox>,
}

impl Team {
    pub fn new(n_threads: usize) -> Team {
        Team {
            barrier: Barrier::new(n_threads),
            outboxes: (0..n_threads).map(|_| Outbox::default()).collect(),
        }
    }

    /// Number of threads.
    pub fn len(&self) -> usize {
        self.outboxes.len()
    }
}

/// What one part has for the others. Two take turns: a part that posts again while another still
/// reads what was posted before does not disturb it.
#[derive(Default)]
struct Outbox([UnsafeCell<Lines>; 2]);

// SAFETY: only its own part changes an outbox, before a barrier; others read it after the barrier, and
// before the next one, after which alone it is that outbox's turn again.
unsafe impl Sync for Outbox {}

/// One thread's share.
pub(crate) struct Part<'a> {
    /// Which one, from 0.
    pub index: usize,
    /// How many there are.
    pub count: usize,
    team: &'a Team,
    /// Which of the outboxes was used last.
    turn: usize,
    /// What the tiles that all parts share were made of since the last barrier of the plan.
    #[cfg(target_arch = "x86_64")]
    pub tiled: Option<crate::matmul::tiled::Tiled>,
    /// What the activations in the scratch memory were made of since then.
    pub quantised: Option<Quantised>,
    /// Memory of the thread's own.
    pub scratch: &'a mut Scratch,
    /// Cosines and sines that were computed last.
    pub rotations: &'a mut Rotations,
}

/// What a thread keeps from job to job.
#[derive(Default)]
pub(crate) struct Own {
    scratch: Scratch,
    rotations: Rotations,
}

impl<'a> Part<'a> {
    pub fn new(index: usize, team: &'a Team, own: &'a mut Own) -> Self {
        Part {
            index,
            count: team.len(),
            team,
            turn: 0,
            #[cfg(target_arch = "x86_64")]
            tiled: None,
            quantised: None,
            scratch: &mut own.scratch,
            rotations: &mut own.rotations,
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
        self.quantised = None;
        self.wait();
    }

    /// The same for things that are not worth sharing one by one: in whole numbers of `block`.
    pub fn range_in_blocks(&self, items: usize, block: usize) -> Range<usize> {
        let blocks = self.range(items.div_ceil(block));
        (blocks.start * block).min(items)..(blocks.end * block).min(items)
    }

    /// Waits until all parts are here. Every part of the dispatch must call it as often.
    pub fn wait(&self) {
        self.team.barrier.wait();
    }

    /// Room for `n` floats that the others may read after the next [`Part::wait`], and the scratch. All
    /// parts post, and wait exactly once before they post again.
    pub fn post(&mut self, n: usize) -> (&mut [f32], &mut Scratch) {
        self.turn = 1 - self.turn;
        let own = self.team.outboxes[self.index].0[self.turn].get();
        // SAFETY: this part alone changes its outbox, and nobody reads this one now; see `Outbox`.
        (unsafe { (*own).take(n) }, self.scratch)
    }

    /// The `n` floats that a part has posted before the last [`Part::wait`].
    pub fn posted(&self, part: usize, n: usize) -> &[f32] {
        let outbox = self.team.outboxes[part].0[self.turn].get();
        // SAFETY: its part does not touch it before all have been at another barrier; see `Outbox`.
        unsafe { (*outbox).given(n) }
    }
}

/// Memory that a thread reuses for every kernel. What it holds at first is unspecified.
#[derive(Default)]
pub(crate) struct Scratch {
    lines: Lines,
    /// The vectors of a product.
    pub vectors: Vec<f32>,
    /// The same as 8-bit numbers.
    pub activations: Vec<Activations>,
}

impl Scratch {
    /// `n` elements, aligned to 64 bytes.
    pub fn take<T: AnyBitPattern + NoUninit>(&mut self, n: usize) -> &mut [T] {
        self.lines.take(n)
    }
}

/// Memory that grows, in whole cache lines.
#[derive(Default)]
struct Lines(Vec<CacheLine>);

#[derive(Clone, Copy)]
#[repr(align(64))]
struct CacheLine {
    _bytes: [u8; 64],
}

impl Lines {
    /// The first `n` elements, to be written.
    fn take<T: AnyBitPattern + NoUninit>(&mut self, n: usize) -> &mut [T] {
        const { assert!(align_of::<T>() <= align_of::<CacheLine>()) };
        let n_lines = (n * size_of::<T>()).div_ceil(size_of::<CacheLine>());
        if self.0.len() < n_lines {
            self.0.resize(n_lines, CacheLine { _bytes: [0; 64] });
        }
        // SAFETY: as many bytes are there, initialised, aligned to more than `T` wants, and borrowed
        // mutably with `self`; any bits are a `T`, and a `T` has no bits that bytes may not have.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast::<T>(), n) }
    }

    /// The first `n` floats of what was taken last.
    fn given(&self, n: usize) -> &[f32] {
        assert!(n * size_of::<f32>() <= self.0.len() * size_of::<CacheLine>());
        // SAFETY: as many bytes are there, initialised and aligned; any bits are a float.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast::<f32>(), n) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_everything_once() {
        for count in 1..5 {
            let team = Team::new(count);
            for items in [0, 1, 2, 3, 7, 100] {
                let mut next = 0;
                for index in 0..count {
                    let mut own = Own::default();
                    let range = Part::new(index, &team, &mut own).range(items);
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
