//! How formats put codes and scales into bytes, where several of them do it in the same way.

use super::CELL;

/// 32 nibbles in 16 bytes: low nibbles first, then the high ones.
pub(super) fn nibbles(qs: &[u8; 16]) -> [u8; CELL] {
    let mut codes = [0; CELL];
    for (i, byte) in qs.iter().enumerate() {
        codes[i] = byte & 15;
        codes[16 + i] = byte >> 4;
    }
    codes
}

/// Group `at` of 32 nibbles: each run of 32 bytes holds one group in its low nibbles, and the next in its high ones.
pub(super) fn nibbles_k(qs: &[u8; 128], at: usize) -> [u8; CELL] {
    let (run, shift) = (&qs[at / 2 * 32..], at % 2 * 4);
    std::array::from_fn(|i| run[i] >> shift & 15)
}

/// Group `at` of 32 2-bit codes: each run of 32 bytes holds four groups.
pub(super) fn two_bits(qs: &[u8; 64], at: usize) -> [u8; CELL] {
    let (run, shift) = (&qs[at / 4 * 32..], at % 4 * 2);
    std::array::from_fn(|i| run[i] >> shift & 3)
}

/// The codes with one more bit each, the lowest bit of `bit(i)`.
pub(super) fn with_bit(codes: [u8; CELL], place: u32, bit: impl Fn(usize) -> u8) -> [u8; CELL] {
    std::array::from_fn(|i| codes[i] | (bit(i) & 1) << place)
}

/// Bit `i` of 32, in the lowest place.
pub(super) fn fifth_bit(qh: [u8; 4], i: usize) -> u8 {
    (u32::from_le_bytes(qh) >> i) as u8
}

/// The 6-bit scale and minimum of group g of 8, packed in 12 bytes.
///
/// Groups 0–3 have their six bits in bytes g and g + 4. Groups 4–7 have four bits in byte g + 4 (low
/// nibble: scale, high nibble: minimum) and the upper two in the top bits of bytes g - 4 and g.
pub fn scale_and_min(scales: &[u8; 12], g: usize) -> (u8, u8) {
    if g < 4 {
        (scales[g] & 63, scales[g + 4] & 63)
    } else {
        (
            scales[g + 4] & 15 | scales[g - 4] >> 6 << 4,
            scales[g + 4] >> 4 | scales[g] >> 6 << 4,
        )
    }
}

/// The 6-bit scale of group g of 16, packed in 12 bytes: four bits in bytes 0–7, two in bytes 8–11.
pub(super) fn scale_q3(scales: &[u8; 12], g: usize) -> u8 {
    let low = scales[g % 8] >> (g / 8 * 4) & 15;
    let high = scales[8 + g % 4] >> (g / 4 * 2) & 3;
    low | high << 4
}
