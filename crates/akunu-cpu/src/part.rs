//! The share of a dispatch that one thread does.

use std::ops::Range;

use bytemuck::{AnyBitPattern, NoUninit};

use crate::barrier::Barrier;
use crate::kept::{Kept, Section};
use crate::pieces::{self, Pieces, RING, Shares};

/// What the threads of a pool share.
pub(crate) struct Team {
    pub barrier: Barrier,
    shares: Vec<Shares>,
}

impl Team {
    pub fn new(n_threads: usize) -> Team {
        Team {
            barrier: Barrier::new(n_threads),
            shares: (0..n_threads).map(|_| Shares::default()).collect(),
        }
    }

    /// Number of threads.
    pub fn len(&self) -> usize {
        self.shares.len()
    }
}

/// One thread's share.
pub(crate) struct Part<'a> {
    /// Which one, from 0.
    pub index: usize,
    /// How many there are.
    pub count: usize,
    team: &'a Team,
    /// The generation of the last dispatch that was divided into pieces, and how many were since the last barrier.
    generation: u32,
    divided: usize,
    section: &'a mut Section,
    /// Memory of the thread's own.
    pub scratch: &'a mut Scratch,
    /// What its kernels keep.
    pub kept: &'a mut Kept,
}

/// What a thread keeps from job to job.
#[derive(Default)]
pub(crate) struct Own {
    section: Section,
    scratch: Scratch,
    kept: Kept,
}

impl<'a> Part<'a> {
    /// Part `index` of the `count` parts of a job, whose pieces have generations after `generation`.
    pub fn new(
        (index, count): (usize, usize),
        team: &'a Team,
        own: &'a mut Own,
        generation: u32,
    ) -> Self {
        own.section.advance();
        Part {
            index,
            count,
            team,
            generation,
            divided: 0,
            section: &mut own.section,
            scratch: &mut own.scratch,
            kept: &mut own.kept,
        }
    }

    /// This part's share of `items` things: contiguous, as even as possible, and together all of them.
    pub fn range(&self, items: usize) -> Range<usize> {
        pieces::share(items, self.index, self.count)
    }

    /// Divides `items` things into pieces, of which each part takes as many as it can. All parts divide the same
    /// number of items at the same place of a dispatch.
    pub fn divide(&mut self, items: usize) -> Pieces {
        if self.divided == RING {
            // The oldest shares are used again: nobody may still take from them.
            self.wait();
        }
        self.divided += 1;
        self.generation = self.generation.wrapping_add(1);
        Pieces::new(items, self.generation)
    }

    /// The next piece for this part.
    pub fn take(&self, pieces: &mut Pieces) -> Option<Range<usize>> {
        pieces.next(self.index, &self.team.shares[..self.count])
    }

    /// The generation of the last pieces.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Waits until all parts are here, between dispatches: what was made of their inputs may be stale then.
    pub fn wait_between_dispatches(&mut self) {
        self.section.advance();
        self.wait();
    }

    /// The present stretch between two barriers of the plan.
    pub fn section(&self) -> Section {
        *self.section
    }

    /// The same for things that are not worth sharing one by one: in whole numbers of `block`.
    pub fn range_in_blocks(&self, items: usize, block: usize) -> Range<usize> {
        let blocks = self.range(items.div_ceil(block));
        (blocks.start * block).min(items)..(blocks.end * block).min(items)
    }

    /// Waits until all parts are here. Every part of the dispatch must call it as often.
    pub fn wait(&mut self) {
        self.team.barrier.wait();
        self.divided = 0;
    }
}

/// Memory that a thread reuses for every kernel. What it holds at first is unspecified.
#[derive(Default)]
pub(crate) struct Scratch(Vec<CacheLine>);

#[derive(Clone, Copy)]
#[repr(align(64))]
struct CacheLine {
    _bytes: [u8; 64],
}

impl Scratch {
    /// `n` elements, aligned to 64 bytes. They hold what was there before, so that a part can use it again.
    pub fn take<T: AnyBitPattern + NoUninit>(&mut self, n: usize) -> &mut [T] {
        const { assert!(align_of::<T>() <= align_of::<CacheLine>()) };
        let n_lines = (n * size_of::<T>()).div_ceil(size_of::<CacheLine>());
        if self.0.len() < n_lines {
            self.0.resize(n_lines, CacheLine { _bytes: [0; 64] });
        }
        // SAFETY: as many bytes are there, initialised, aligned to more than `T` wants, and borrowed
        // mutably with `self`; any bits are a `T`, and a `T` has no bits that bytes may not have.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast::<T>(), n) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_grows_and_is_aligned() {
        let mut scratch = Scratch::default();
        scratch.take::<u8>(3).fill(7);
        let floats = scratch.take::<f32>(1000);
        floats.fill(1.0);
        assert_eq!((floats.len(), floats.as_ptr().addr() % 64), (1000, 0));
    }
}
