//! How fast memory is read: the floor of everything that reads weights.

use std::hint::black_box;
use std::time::Instant;

use crate::isa::Isa;
use crate::memory::Pages;
use crate::simd::{self, Lanes, WithLanes, prefetch};

/// What is read to measure the memory: more than any cache holds.
const BYTES: usize = 1 << 30;
const PASSES: usize = 5;
/// Bytes ahead of the present ones that are fetched, as the products do.
const AHEAD: usize = 4096;
/// Bytes of a cache line.
const LINE: usize = 64;

/// Bytes a second that `threads` threads read from memory together, the best of a few passes; `None` if there is not
/// enough memory to try.
pub fn measure_bandwidth(threads: usize) -> Option<f64> {
    let mut pages = Pages::zeroed(BYTES)?;
    // Pages that were never written to are all one.
    pages.bytes_mut().fill(0x3c);
    let numbers = bytemuck::cast_slice(pages.bytes());
    let pass = || {
        let begin = Instant::now();
        black_box(read(black_box(numbers), threads));
        BYTES as f64 / begin.elapsed().as_secs_f64()
    };
    Some((0..PASSES).map(|_| pass()).fold(0.0, f64::max))
}

/// The sum of numbers, each thread's part by vector instructions and with the next lines asked for: what reading memory
/// costs when nothing else is done.
pub fn read(numbers: &[f32], threads: usize) -> f32 {
    let part = numbers.len().div_ceil(threads.max(1)).max(1);
    std::thread::scope(|scope| {
        let parts = numbers.chunks(part);
        let sums: Vec<_> = parts.map(|part| scope.spawn(move || sum(part))).collect();
        let sums = sums.into_iter().map(|sum| sum.join().unwrap_or(f32::NAN));
        sums.sum()
    })
}

fn sum(numbers: &[f32]) -> f32 {
    match Isa::detect().level() {
        Some(level) if level.isa() != Isa::Scalar => simd::run(level, Sum(numbers)),
        _ => numbers.iter().sum(),
    }
}

/// The sum of numbers, with the next lines asked for.
struct Sum<'a>(&'a [f32]);

impl WithLanes for Sum<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<L: Lanes>(self) -> f32 {
        const PER_LINE: usize = LINE / size_of::<f32>();
        const LINES: usize = 4;
        // SAFETY: `reach`: all numbers are within the slice.
        unsafe {
            let mut sums = [L::splat(0.0); LINES];
            let blocks = self.0.chunks_exact(LINES * PER_LINE);
            let rest: f32 = blocks.remainder().iter().sum();
            for block in blocks {
                for (line, sum) in sums.iter_mut().enumerate() {
                    let at = block.as_ptr().add(line * PER_LINE);
                    prefetch(at.wrapping_byte_add(AHEAD));
                    for step in 0..PER_LINE / L::N {
                        *sum = sum.add(L::load(at.add(step * L::N)));
                    }
                }
            }
            rest + L::sums(sums).iter().sum::<f32>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_read_once() {
        let numbers: Vec<f32> = (0..1003).map(|i| i as f32).collect();
        for threads in [0, 1, 2, 3] {
            assert_eq!(read(&numbers, threads), 1002.0 * 1003.0 / 2.0);
        }
        assert_eq!(read(&[], 2), 0.0);
    }
}
