//! Fetching the next block while the present one is multiplied.
//!
//! A core can wait for about 16 lines of memory at once. Asked for one after the other during all of the work, they come
//! beside it; asked for all at once they stop it, which makes reading take half as long again.
//!
//! So the work on a block is cut into steps of about as many cycles, and each of them asks for the place that is as much further
//! on. A line may be asked for twice: that is cheaper than to count lines.

use crate::simd::prefetch;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Where the keys, or the values, of the next block are fetched.
pub(crate) struct Ahead {
    /// The place that is fetched next.
    at: *const u8,
    /// Bytes from it to the one after it.
    between: usize,
}

impl Ahead {
    /// As many bytes in as many steps. If there are fewer steps than lines, the last lines are not fetched: no line is left
    /// out before them, so that the processor's own guesses go on with them.
    pub fn new(first: *const u8, n_bytes: usize, n_steps: usize) -> Ahead {
        Ahead {
            at: first,
            between: n_bytes.div_ceil(n_steps).min(LINE),
        }
    }

    /// Fetches what is due after as many more steps of the work.
    #[inline(always)]
    pub fn steps(&mut self, n: usize) {
        for _ in 0..n {
            prefetch(self.at);
            self.at = self.at.wrapping_add(self.between);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After all steps all bytes were asked for, and hardly any beyond them.
    #[test]
    fn all_bytes_are_fetched_in_time() {
        let bytes = [0; 4352];
        for n_steps in [68, 70, 102, 500] {
            let mut ahead = Ahead::new(bytes.as_ptr(), bytes.len(), n_steps);
            assert!(ahead.between <= LINE);
            ahead.steps(n_steps);
            let fetched = ahead.at.addr() - bytes.as_ptr().addr();
            assert!(
                (4352..4352 + n_steps).contains(&fetched),
                "{fetched} in {n_steps}"
            );
        }
    }
}
