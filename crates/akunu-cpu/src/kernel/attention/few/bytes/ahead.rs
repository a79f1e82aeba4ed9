//! Fetching the next block while the present one is multiplied.
//!
//! A core can wait for about 16 lines of memory at once. Asked for one after the other during all of the work, they come
//! beside it; asked for all at once they stop it, which makes reading take half as long again.

use crate::simd::prefetch;

/// Bytes of a cache line.
const LINE: usize = 64;
/// A line, as places are counted.
const ONE: usize = 256;

/// Where the keys and the values of the next block are fetched.
pub(crate) struct Ahead {
    /// What is fetched first, and last.
    pools: [*const u8; 2],
    /// Lines of each.
    n_lines: usize,
    /// The place that is fetched next, in parts of a line: keys, then values.
    at: usize,
    /// Parts of a line for each cycle, times [`ONE`].
    rate: usize,
}

impl Ahead {
    /// As many bytes of two pools in as many cycles, about.
    pub fn new(pools: [*const u8; 2], n_bytes: usize, cycles: usize) -> Ahead {
        let n_lines = n_bytes.div_ceil(LINE);
        Ahead {
            pools,
            n_lines,
            at: 0,
            rate: (2 * n_lines * ONE * ONE).div_ceil(cycles),
        }
    }

    /// Fetches what is due after as many more cycles of work. A line may be asked for twice: that is cheaper than a branch
    /// that nobody can predict.
    #[inline(always)]
    pub fn spend(&mut self, cycles: usize) {
        let parts = cycles * self.rate / ONE;
        let line = self.at / ONE;
        let [first, last] = self.pools;
        for line in line..line + parts.div_ceil(ONE) {
            let (pool, line) = if line < self.n_lines {
                (first, line)
            } else {
                (last, line - self.n_lines)
            };
            prefetch(pool.wrapping_add(line * LINE));
        }
        self.at += parts;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After all cycles all lines were asked for, in steps of any length, and hardly any beyond them.
    #[test]
    fn all_lines_are_fetched_in_time() {
        let bytes = [0; 4352];
        for (cycles, step) in [(1000, 1), (700, 7), (1378, 13), (300, 60)] {
            let mut ahead = Ahead::new([bytes.as_ptr(); 2], bytes.len(), cycles);
            for _ in 0..cycles.div_ceil(step) {
                ahead.spend(step);
            }
            let fetched = ahead.at / ONE;
            assert!((130..=150).contains(&fetched), "{fetched} of 136 in {step}");
        }
    }
}
