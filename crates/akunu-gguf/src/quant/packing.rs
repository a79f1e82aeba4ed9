//! How small integers share bytes.
//!
//! Every format of ggml packs with the same rule and other numbers. A run of `STRIDE` bytes holds
//! `8 / BITS` times as many values, and
//!
//! ```text
//! value k * STRIDE + i  =  bits k * BITS .. (k + 1) * BITS  of byte i
//! ```
//!
//! | values | BITS | STRIDE |
//! |---|---|---|
//! | nibbles of q4_0, q4_1, q5_0, q5_1 | 4 | 16 |
//! | nibbles of q4_k, q5_k | 4 | 32 |
//! | nibbles of q6_k | 4 | 64 |
//! | low scale bits of q3_k | 4 | 8 |
//! | pairs of q2_k, q3_k, and the high bits of q6_k | 2 | 32 |
//! | high scale bits of q3_k | 2 | 4 |
//! | fifth bits of q5_k, third bits of q3_k | 1 | 32 |
//! | fifth bits of q5_0, q5_1 | 1 | 1 |

/// The bytes that hold these values, each below `1 << BITS`. `VALUES` must be `BYTES * 8 / BITS`.
pub(super) fn pack<
    const BITS: usize,
    const STRIDE: usize,
    const BYTES: usize,
    const VALUES: usize,
>(
    values: &[u8; VALUES],
) -> [u8; BYTES] {
    const { assert!(BYTES * 8 == VALUES * BITS && BYTES.is_multiple_of(STRIDE)) };
    let mut bytes = [0; BYTES];
    let runs = values.chunks_exact(STRIDE * 8 / BITS);
    for (run, bytes) in runs.zip(bytes.chunks_exact_mut(STRIDE)) {
        for (k, values) in run.chunks_exact(STRIDE).enumerate() {
            for (value, byte) in values.iter().zip(bytes.iter_mut()) {
                *byte |= value << (k * BITS);
            }
        }
    }
    bytes
}

/// The low `bits` bits of each value, and what is above them.
pub(super) fn split<const N: usize>(values: &[u8; N], bits: usize) -> ([u8; N], [u8; N]) {
    let mask = (1 << bits) - 1;
    (values.map(|q| q & mask), values.map(|q| q >> bits))
}

/// The inverse of [`split`].
pub(super) fn join<const N: usize>(low: &[u8; N], high: &[u8; N], bits: usize) -> [u8; N] {
    core::array::from_fn(|i| low[i] | (high[i] << bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_holds_for_nibbles_pairs_and_single_bits() {
        let nibbles = pack::<4, 2, 2, 4>(&[1, 3, 2, 4]);
        assert_eq!(nibbles, [0x21, 0x43], "low nibbles first");
        let pairs = pack::<2, 2, 2, 8>(&[0, 3, 1, 2, 2, 1, 3, 0]);
        assert_eq!(pairs, [0b11_10_01_00, 0b00_01_10_11]);
        let mut bits = [0; 16];
        (bits[0], bits[15]) = (1, 1);
        assert_eq!(pack::<1, 1, 2, 16>(&bits), [0b1, 0b1000_0000]);
    }

    /// Two runs of 16 bytes: the second begins at value 32.
    #[test]
    fn runs_follow_one_another() {
        let values: [u8; 64] = core::array::from_fn(|i| if i == 33 { 7 } else { 0 });
        let bytes = pack::<4, 16, 32, 64>(&values);
        let expected: [u8; 32] = core::array::from_fn(|i| if i == 17 { 7 } else { 0 });
        assert_eq!(bytes, expected);
    }

    #[test]
    fn joining_undoes_splitting() {
        let values: [u8; 64] = core::array::from_fn(|i| i as u8);
        let (low, high) = split(&values, 4);
        assert_eq!(low[63], 15);
        assert_eq!(high[63], 3);
        assert_eq!(join(&low, &high, 4), values);
    }
}
