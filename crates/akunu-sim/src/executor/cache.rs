//! The cache between a GPU and its memory: lines of 128 bytes, of which the one that was longest not used goes first.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

const LINE: usize = 128;

/// A cache, and what has passed it.
pub struct Cache {
    /// Lines that it holds at most.
    capacity: usize,
    /// When each line was used last, and whether it was written.
    lines: HashMap<usize, (u64, bool)>,
    /// Lines by when they were used; those that were used again since stand here twice.
    order: VecDeque<(usize, u64)>,
    now: u64,
    n_read: u64,
    n_written: u64,
}

impl Cache {
    /// An empty cache of this many bytes.
    pub fn new(bytes: u64) -> Cache {
        Cache {
            capacity: (bytes as usize / LINE).max(1),
            lines: HashMap::new(),
            order: VecDeque::new(),
            now: 0,
            n_read: 0,
            n_written: 0,
        }
    }

    /// Accesses to these bytes, all at once. A line that is only written is not read before: kernels write whole lines, by the threads of
    /// several SIMD groups.
    pub fn touch(&mut self, accesses: impl Iterator<Item = Range<usize>>, is_store: bool) {
        let lines = accesses.flat_map(|bytes| bytes.start / LINE..=(bytes.end - 1) / LINE);
        let mut lines: Vec<usize> = lines.collect();
        lines.sort_unstable();
        lines.dedup();
        for line in lines {
            self.now += 1;
            let known = self.lines.get(&line).map(|&(_, is_written)| is_written);
            if known.is_none() && !is_store {
                self.n_read += 1;
            }
            let was_written = known.unwrap_or(false);
            if is_store && !was_written {
                self.n_written += 1;
            }
            self.lines.insert(line, (self.now, was_written || is_store));
            self.order.push_back((line, self.now));
            self.make_room();
        }
    }

    fn make_room(&mut self) {
        while self.lines.len() > self.capacity {
            let Some((line, used)) = self.order.pop_front() else {
                return;
            };
            if self.lines.get(&line).is_some_and(|&(last, _)| last == used) {
                self.lines.remove(&line);
            }
        }
    }

    /// Bytes that were read from memory and written to it.
    pub fn traffic(&self) -> (u64, u64) {
        let bytes = |n: u64| n * LINE as u64;
        (bytes(self.n_read), bytes(self.n_written))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when a line that is still there is read again, or one that had to go is not.
    #[test]
    fn the_line_that_was_longest_not_used_goes_first() {
        let mut cache = Cache::new(2 * LINE as u64);
        let mut read = |line: usize| {
            cache.touch(std::iter::once(line * LINE..line * LINE + 4), false);
            cache.traffic().0 / LINE as u64
        };
        assert_eq!([0, 1, 0, 2, 0, 1].map(&mut read), [1, 2, 2, 3, 3, 4]);
    }

    #[test]
    fn an_access_across_lines_is_of_both_and_a_store_is_no_load() {
        let mut cache = Cache::new(1 << 20);
        cache.touch(std::iter::once(120..136), false);
        assert_eq!(cache.traffic(), (256, 0));
        for _ in 0..3 {
            cache.touch(std::iter::once(512..516), true);
        }
        cache.touch(std::iter::once(512..516), false);
        assert_eq!(cache.traffic(), (256, 128));
    }
}
