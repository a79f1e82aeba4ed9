//! Work that balances itself.
//!
//! The items of a dispatch (panels of rows, blocks of queries) are divided evenly among the parts at first, always in
//! the same way: a part finds again what it had in its cache, or in the memory beside its core. A part takes *pieces*
//! of its share from the front, large ones first; one that has no more takes pieces from the shares of others. So a
//! slow core, or one that does other work too, ends up with less, and no thread waits for more than a piece.
//!
//! Who computes an item has no influence on its result.
//!
//! A share is one number, `generation << 32 | items taken`. A number of an older generation means that nothing is
//! taken yet, so that it needs no reset. Parts may be in different dispatches, as long as there is no barrier
//! between them; each dispatch since the last barrier has a number of its own ([`RING`] of them).

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::gate::Line;

/// Dispatches between two barriers that can have shares at the same time.
pub(crate) const RING: usize = 8;

/// A part takes this fraction of what is left of its share at once.
const FRACTION: usize = 4;

/// What is taken of the shares of one part.
#[derive(Default)]
pub(crate) struct Shares([Line<AtomicU64>; RING]);

/// The items of one dispatch, as one part takes them.
pub(crate) struct Pieces {
    items: usize,
    generation: u32,
    /// Whose share it takes from: this many parts after its own.
    distance: usize,
}

impl Pieces {
    pub fn new(items: usize, generation: u32) -> Pieces {
        Pieces {
            items,
            generation,
            distance: 0,
        }
    }

    /// The next piece for part `index`; `None` if all items are taken.
    pub fn next(&mut self, index: usize, shares: &[Shares]) -> Option<Range<usize>> {
        let count = shares.len();
        while self.distance < count {
            let owner = (index + self.distance) % count;
            let share = share(self.items, owner, count);
            if let Some(piece) = self.take(&shares[owner], share) {
                return Some(piece);
            }
            self.distance += 1;
        }
        None
    }

    /// Takes a piece of a share.
    fn take(&self, shares: &Shares, share: Range<usize>) -> Option<Range<usize>> {
        let taken = &shares.0[self.generation as usize % RING].0;
        let mut now = taken.load(Ordering::Relaxed);
        loop {
            let at = if (now >> 32) as u32 == self.generation {
                now as u32 as usize
            } else {
                0
            };
            let left = share.len().saturating_sub(at);
            if left == 0 {
                return None;
            }
            let piece = (left / FRACTION).max(1);
            let then = u64::from(self.generation) << 32 | (at + piece) as u64;
            match taken.compare_exchange_weak(now, then, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(share.start + at..share.start + at + piece),
                Err(other) => now = other,
            }
        }
    }
}

/// Part `index`'s share of `items` things: contiguous, as even as possible, and together all of them.
pub(crate) fn share(items: usize, index: usize, count: usize) -> Range<usize> {
    items * index / count..items * (index + 1) / count
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn shares_cover_everything_once() {
        for count in 1..5 {
            for items in [0, 1, 2, 3, 7, 100] {
                let mut next = 0;
                for index in 0..count {
                    let range = share(items, index, count);
                    assert_eq!(range.start, next);
                    assert!(range.len() <= items.div_ceil(count));
                    next = range.end;
                }
                assert_eq!(next, items);
            }
        }
    }

    /// Fails if a piece is handed out twice or never, or if a part cannot take from the shares of others.
    #[test]
    fn one_part_can_do_the_work_of_all() {
        let shares: Vec<Shares> = (0..3).map(|_| Shares::default()).collect();
        for generation in [1, 2, 1 + RING as u32] {
            let mut pieces = Pieces::new(100, generation);
            let mut done = [0; 100];
            while let Some(piece) = pieces.next(1, &shares) {
                for item in piece {
                    done[item] += 1;
                }
            }
            assert_eq!(done, [1; 100]);
            assert_eq!(Pieces::new(100, generation).next(0, &shares), None);
        }
    }

    #[test]
    fn large_pieces_come_first() {
        let shares = [Shares::default()];
        let mut pieces = Pieces::new(64, 1);
        let lengths: Vec<usize> =
            std::iter::from_fn(|| pieces.next(0, &shares).map(|p| p.len())).collect();
        assert_eq!((lengths[0], lengths.last()), (16, Some(&1)));
        assert!(lengths.is_sorted_by(|a, b| a >= b));
    }

    /// Fails if two parts can take the same item at the same moment, or if a part that is ahead disturbs another.
    #[test]
    fn parts_that_run_at_once_share_every_item_once() {
        let shares: Vec<Shares> = (0..4).map(|_| Shares::default()).collect();
        let done: Vec<AtomicUsize> = (0..RING * 500).map(|_| AtomicUsize::new(0)).collect();
        std::thread::scope(|scope| {
            for index in 0..4 {
                let (shares, done) = (&shares, &done);
                scope.spawn(move || {
                    for dispatch in 0..RING {
                        let mut pieces = Pieces::new(500, 1 + dispatch as u32);
                        while let Some(piece) = pieces.next(index, shares) {
                            for item in piece {
                                done[dispatch * 500 + item].fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    }
                });
            }
        });
        assert!(done.iter().all(|n| n.load(Ordering::Relaxed) == 1));
    }
}
