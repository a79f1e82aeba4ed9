//! What a barrier costs: the price of each dispatch that waits for another one.

use std::io;
use std::time::{Duration, Instant};

use crate::part::Part;
use crate::pool::ThreadPool;

/// Barriers that are timed at once, and how often.
const BARRIERS: u32 = 1000;
const PASSES: usize = 9;

/// The time that `threads` threads take to meet once, with nothing to do in between: the median of a few passes.
pub fn measure_barrier(threads: usize) -> io::Result<Duration> {
    let mut pool = ThreadPool::new(threads.max(1))?;
    let mut times = [Duration::ZERO; PASSES];
    for time in &mut times {
        let begin = Instant::now();
        let meet = |part: &mut Part| (0..BARRIERS).for_each(|_| part.wait());
        pool.run(&meet).map_err(io::Error::other)?;
        *time = begin.elapsed() / BARRIERS;
    }
    times.sort_unstable();
    Ok(times[PASSES / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_threads_can_be_measured() {
        for threads in [0, 1, 2] {
            assert!(measure_barrier(threads).unwrap() < Duration::from_secs(1));
        }
    }
}
