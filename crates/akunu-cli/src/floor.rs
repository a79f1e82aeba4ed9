//! The floor of decoding: each weight is read once a token, so nothing is faster than the memory.

use akunu_arch::ModelConfig;
use akunu_gguf::WeightStore;
use std::hint::black_box;
use std::time::Instant;

/// Bytes of weights that one token reads. Of a token embedding that is not the output layer too, it
/// reads one row, which does not count.
pub fn weight_bytes(store: &WeightStore) -> u64 {
    let tied = store.has_tied_embeddings();
    let is_read = |name: &str| tied || name != "token_embedding.weight";
    let read = store.iter().filter(|weight| is_read(weight.name));
    read.map(|weight| weight.size() as u64).sum()
}

/// Bytes of keys and values that a token at this position reads.
pub fn cache_bytes(config: &ModelConfig, position: u32) -> u64 {
    config.kv_bytes(position.max(1), 1)
}

/// What is read to measure the memory: more than any cache holds.
const BUFFER_BYTES: usize = 1 << 30;
const PASSES: usize = 3;

/// Bytes a second that `threads` threads read from memory together: each sums its part of a large
/// buffer, and the best of a few passes counts.
pub fn measure_bandwidth(threads: usize) -> f64 {
    let words: Vec<u64> = (0..(BUFFER_BYTES / size_of::<u64>()) as u64).collect();
    let part = words.len().div_ceil(threads.max(1));
    let pass = || {
        let begin = Instant::now();
        std::thread::scope(|scope| {
            for words in words.chunks(part) {
                scope.spawn(move || black_box(sum(words)));
            }
        });
        BUFFER_BYTES as f64 / begin.elapsed().as_secs_f64()
    };
    (0..PASSES).map(|_| pass()).fold(0.0, f64::max)
}

/// The sum, with enough additions under way at once that only the memory is waited for.
fn sum(words: &[u64]) -> u64 {
    let mut sums = [0u64; 32];
    for chunk in words.chunks_exact(sums.len()) {
        for (sum, word) in sums.iter_mut().zip(chunk) {
            *sum = sum.wrapping_add(*word);
        }
    }
    sums.iter().fold(0, |all, sum| all.wrapping_add(*sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read() {
        let words: Vec<u64> = (0..320).collect();
        assert_eq!(sum(&words), 319 * 320 / 2);
    }
}
