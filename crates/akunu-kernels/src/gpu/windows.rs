//! Long memory as several shorter buffers.
//!
//! A buffer has a largest length; a mapped weight file may be longer. It is then bound as windows that
//! overlap by half:
//!
//! ```text
//! memory   |================================|
//! window 0 |--------------|
//! window 1        |--------------|
//! window 2               |--------------|
//! window 3                       |---------|
//! ```
//!
//! so that whatever is not longer than half a window lies whole in the one in whose first half it
//! begins.

use std::ops::Range;

/// How memory is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    len: usize,
    size: usize,
    stride: usize,
}

impl Windows {
    /// Windows of at most `max` bytes over `len` bytes, which begin at multiples of `page`.
    pub fn new(len: usize, max: usize, page: usize) -> Windows {
        if len <= max {
            return Windows {
                len,
                size: len,
                stride: len.max(1),
            };
        }
        let stride = (max / 2 / page * page).max(page);
        Windows {
            len,
            size: 2 * stride,
            stride,
        }
    }

    /// The bytes of each window.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let starts = (0..self.len.max(1)).step_by(self.stride);
        // The last window would be a part of the one before it.
        let is_new = |start: &usize| *start == 0 || start + self.stride < self.len;
        starts
            .filter(is_new)
            .map(|start| start..self.len.min(start + self.size))
    }

    /// Bytes of the memory.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether there is only one.
    pub fn is_whole(&self) -> bool {
        self.size >= self.len
    }

    /// The window in which `bytes` lie whole, and their offset in it.
    pub fn place(&self, bytes: &Range<usize>) -> Option<(usize, usize)> {
        if self.is_whole() {
            return Some((0, bytes.start));
        }
        let last = self.ranges().count() - 1;
        let at = (bytes.start / self.stride).min(last);
        let start = at * self.stride;
        (bytes.end <= start + self.size).then_some((at, bytes.start - start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_memory_is_one_window() {
        for len in [0, 1, 4096, 5000] {
            let windows = Windows::new(len, 5000, 1000);
            assert!(windows.ranges().eq(std::iter::once(0..len)), "{len}");
            assert_eq!(windows.place(&(3..5)), Some((0, 3)));
        }
    }

    /// Every range up to half a window, at every place: it must lie whole in its window, and windows
    /// must begin at pages, keep the largest length and cover everything.
    #[test]
    fn nothing_up_to_half_a_window_is_cut() {
        let page = 4;
        for max in [8, 11, 16, 26] {
            for len in max + 1..70 {
                let windows = Windows::new(len, max, page);
                let ranges: Vec<_> = windows.ranges().collect();
                assert!(ranges.iter().all(|r| r.len() <= max && r.start % page == 0));
                assert_eq!(ranges.last().unwrap().end, len, "{windows:?}");
                let half = windows.size / 2;
                for start in 0..len {
                    for end in start..=len.min(start + half) {
                        let (at, offset) = windows.place(&(start..end)).unwrap();
                        assert_eq!(ranges[at].start + offset, start);
                        assert!(end <= ranges[at].end, "{start}..{end} in {windows:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_longer_and_cut_is_refused() {
        let windows = Windows::new(100, 40, 4);
        assert_eq!(windows.place(&(0..40)), Some((0, 0)));
        assert_eq!(windows.place(&(1..41)), None);
        assert_eq!(windows.place(&(21..61)), None);
        assert_eq!(windows.place(&(20..60)), Some((1, 0)));
    }
}
