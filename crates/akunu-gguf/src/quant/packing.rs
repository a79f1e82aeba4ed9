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

/// The values that `bytes` hold. `VALUES` must be `BYTES * 8 / BITS`.
pub(super) fn unpack<
    const BITS: usize,
    const STRIDE: usize,
    const BYTES: usize,
    const VALUES: usize,
>(
    bytes: &[u8; BYTES],
) -> [u8; VALUES] {
    const { assert!(BYTES * 8 == VALUES * BITS && BYTES.is_multiple_of(STRIDE)) };
    let mask = 0xff >> (8 - BITS);
    let mut values = [0; VALUES];
    let runs = values.chunks_exact_mut(STRIDE * 8 / BITS);
    for (run, bytes) in runs.zip(bytes.chunks_exact(STRIDE)) {
        for (k, values) in run.chunks_exact_mut(STRIDE).enumerate() {
            for (value, byte) in values.iter_mut().zip(bytes) {
                *value = (byte >> (k * BITS)) & mask;
            }
        }
    }
    values
}

/// The bytes that hold these values, each below `1 << BITS`; the inverse of [`unpack`].
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
        let nibbles: [u8; 4] = unpack::<4, 2, 2, 4>(&[0x21, 0x43]);
        assert_eq!(nibbles, [1, 3, 2, 4], "low nibbles first");
        let pairs: [u8; 8] = unpack::<2, 2, 2, 8>(&[0b11_10_01_00, 0b00_01_10_11]);
        assert_eq!(pairs, [0, 3, 1, 2, 2, 1, 3, 0]);
        let bits: [u8; 16] = unpack::<1, 1, 2, 16>(&[0b1, 0b1000_0000]);
        assert_eq!(bits[0], 1);
        assert_eq!(bits[15], 1);
        assert_eq!(bits.iter().sum::<u8>(), 2);
    }

    #[test]
    fn packing_undoes_unpacking() {
        let bytes: [u8; 64] = core::array::from_fn(|i| (i * 37 + 11) as u8);
        assert_eq!(
            pack::<4, 16, 64, 128>(&unpack::<4, 16, 64, 128>(&bytes)),
            bytes
        );
        assert_eq!(
            pack::<2, 32, 64, 256>(&unpack::<2, 32, 64, 256>(&bytes)),
            bytes
        );
        assert_eq!(
            pack::<1, 32, 64, 512>(&unpack::<1, 32, 64, 512>(&bytes)),
            bytes
        );
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
