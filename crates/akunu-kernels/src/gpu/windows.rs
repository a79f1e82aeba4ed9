//! Long memory as several shorter buffers.
//!
//! A buffer has a largest length; a mapped weight file may be longer. It is then bound as windows that
//! overlap by the largest tensor:
//!
//! ```text
//! memory   |================================|
//! window 0 |--------------|
//! window 1            |--------------|
//! window 2                       |---------|
//!                     |--| overlap
//! ```
//!
//! so that whatever is not longer than that lies whole in the window that is the last to begin before
//! it. If the largest tensor is not known, it is taken to be half of a window.

use std::ops::Range;

/// How memory is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    len: usize,
    size: usize,
    stride: usize,
    /// Bytes by which a window reaches into the next: what is longer may be cut.
    overlap: usize,
}

impl Windows {
    /// Windows of at most `max` bytes over `len` bytes, which begin at multiples of `page`, such that no part of up to
    /// `longest` bytes is cut.
    pub fn new(len: usize, max: usize, page: usize, longest: Option<usize>) -> Windows {
        if len <= max {
            return Windows {
                len,
                size: len,
                stride: len.max(1),
                overlap: 0,
            };
        }
        let size = (max / page * page).max(2 * page);
        let wanted = longest.map(|bytes| bytes.next_multiple_of(page));
        // What no window holds is refused when it is bound.
        let overlap = wanted.filter(|&bytes| bytes < size);
        let overlap = overlap.unwrap_or((size / 2).next_multiple_of(page));
        Windows {
            len,
            size,
            stride: size - overlap,
            overlap,
        }
    }

    /// Bytes of the longest part that lies whole in a window wherever it begins.
    pub(super) fn overlap(&self) -> usize {
        self.overlap
    }

    /// The bytes of each window.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let starts = (0..self.len.max(1)).step_by(self.stride);
        // The last window would be a part of the one before it.
        let is_new = |start: &usize| *start == 0 || start + self.overlap < self.len;
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
            let windows = Windows::new(len, 5000, 1000, None);
            assert!(windows.ranges().eq(std::iter::once(0..len)), "{len}");
            assert_eq!(windows.place(&(3..5)), Some((0, 3)));
        }
    }

    /// Every range up to the longest part, at every place: it must lie whole in its window, and windows
    /// must begin at pages, keep the largest length and cover everything.
    #[test]
    fn nothing_up_to_the_longest_part_is_cut() {
        let page = 4;
        for (max, len) in [8, 11, 16, 26]
            .into_iter()
            .flat_map(|max| (max + 1..70).map(move |len| (max, len)))
        {
            for longest in [None, Some(1), Some(5), Some(8), Some(100)] {
                let windows = Windows::new(len, max, page, longest);
                let ranges: Vec<_> = windows.ranges().collect();
                assert!(ranges.iter().all(|r| r.len() <= max && r.start % page == 0));
                assert_eq!(ranges.last().unwrap().end, len, "{windows:?}");
                let whole = longest.unwrap_or(0).max(windows.overlap());
                for start in 0..len {
                    for end in start..=len.min(start + whole) {
                        let Some((at, offset)) = windows.place(&(start..end)) else {
                            assert!(end - start > windows.overlap(), "{windows:?}");
                            continue;
                        };
                        assert_eq!(ranges[at].start + offset, start);
                        assert!(end <= ranges[at].end, "{start}..{end} in {windows:?}");
                    }
                }
            }
        }
    }

    /// A file of 40 GB in buffers of 9, whose largest tensor has 0.5: by halves it would be bound almost twice.
    #[test]
    fn windows_overlap_by_the_largest_tensor() {
        let bound = |longest| {
            let windows = Windows::new(40_000, 9_000, 4, longest);
            windows.ranges().map(|range| range.len()).sum::<usize>()
        };
        assert_eq!(bound(Some(500)), 40_000 + 4 * 500);
        assert!(bound(None) > 70_000);
    }

    #[test]
    fn what_is_longer_and_cut_is_refused() {
        let windows = Windows::new(100, 40, 4, None);
        assert_eq!(windows.place(&(0..40)), Some((0, 0)));
        assert_eq!(windows.place(&(1..41)), None);
        assert_eq!(windows.place(&(21..61)), None);
        assert_eq!(windows.place(&(20..60)), Some((1, 0)));
    }
}
