//! The 8 scales and 8 minima of Q4_K and Q5_K, 6 bits each in 12 bytes.
//!
//! ```text
//! byte 0..4    high 2 bits of scale 4..8 | scale 0..4
//! byte 4..8    high 2 bits of min 4..8   | min 0..4
//! byte 8..12   low 4 bits of min 4..8    | low 4 bits of scale 4..8
//! ```

/// The bytes of these scales and minima, each below 64; the inverse of
/// [`akunu_types::format::scale_and_min`].
pub(super) fn pack_scales(scales: &[u8; 8], mins: &[u8; 8]) -> [u8; 12] {
    let mut bytes = [0; 12];
    for i in 0..4 {
        bytes[i] = scales[i] | ((scales[4 + i] >> 4) << 6);
        bytes[4 + i] = mins[i] | ((mins[4 + i] >> 4) << 6);
        bytes[8 + i] = (scales[4 + i] & 15) | ((mins[4 + i] & 15) << 4);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use akunu_types::format::scale_and_min;

    #[test]
    fn reading_undoes_packing() {
        let scales: [u8; 8] = core::array::from_fn(|i| (i * 25 + 5) as u8 & 63);
        let mins: [u8; 8] = core::array::from_fn(|i| (i * 19 + 60) as u8 & 63);
        let bytes = pack_scales(&scales, &mins);
        for g in 0..8 {
            assert_eq!(scale_and_min(&bytes, g), (scales[g], mins[g]), "group {g}");
        }
    }
}
