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

/// The bits of `mask` from bit `shift` on of each of 32 bytes, eight bytes at a time.
pub(super) fn fields(bytes: &[u8], shift: usize, mask: u8) -> [u8; CELL] {
    let mut fields = [0; CELL];
    let mask = u64::from_le_bytes([mask; 8]);
    let bytes = bytes.as_chunks().0.iter();
    for (fields, bytes) in fields.as_chunks_mut().0.iter_mut().zip(bytes) {
        *fields = (u64::from_le_bytes(*bytes) >> shift & mask).to_le_bytes();
    }
    fields
}

/// Group `at` of 32 nibbles: each run of 32 bytes holds one group in its low nibbles, and the next in its high ones.
pub(super) fn nibbles_k(qs: &[u8; 128], at: usize) -> [u8; CELL] {
    fields(&qs[at / 2 * 32..], at % 2 * 4, 15)
}

/// Group `at` of 32 2-bit codes: each run of 32 bytes holds four groups.
pub(super) fn two_bits(qs: &[u8; 64], at: usize) -> [u8; CELL] {
    fields(&qs[at / 4 * 32..], at % 4 * 2, 3)
}

/// Codes with further bits from `place` on.
pub(super) fn join(codes: [u8; CELL], bits: [u8; CELL], place: u32) -> [u8; CELL] {
    std::array::from_fn(|i| codes[i] | bits[i] << place)
}

/// 32 bits in 4 bytes.
pub(super) fn bits(qh: [u8; 4]) -> [u8; CELL] {
    let bits = u32::from_le_bytes(qh);
    std::array::from_fn(|i| (bits >> i & 1) as u8)
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
