//! Codes of 2 to 8 bits, packed in words of 32 bits.

/// Code `at` of a stream of `bits`-bit codes, lowest bits first, whose words `word` finds. A code of 3 bits may lie in two.
pub(super) fn code(word: impl Fn(usize) -> u32, bits: u32, at: usize) -> u32 {
    let first = at * bits as usize;
    let (index, shift) = (first / 32, (first % 32) as u32);
    let mut found = word(index) >> shift;
    if shift + bits > 32 {
        found |= word(index + 1) << (32 - shift);
    }
    found & ((1 << bits) - 1)
}

/// The words that `n` codes fill.
pub(super) fn n_words(n: usize, bits: u32) -> Option<usize> {
    Some(n.checked_mul(bits as usize)?.div_ceil(32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_three_bits_pass_from_word_to_word() {
        let stream = (0..32).fold(0u128, |bits, i| bits | (i * 5 % 8) << (3 * i));
        let words: Vec<u32> = (0..3).map(|w| (stream >> (32 * w)) as u32).collect();
        for i in 0..32 {
            assert_eq!(code(|w| words[w], 3, i), (i * 5 % 8) as u32, "code {i}");
        }
        assert_eq!((n_words(32, 3), n_words(33, 3)), (Some(3), Some(4)));
    }
}
