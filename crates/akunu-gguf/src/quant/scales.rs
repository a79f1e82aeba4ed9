//! The 8 scales and 8 minima of Q4_K and Q5_K, 6 bits each in 12 bytes.
//!
//! ```text
//! byte 0..4    high 2 bits of scale 4..8 | scale 0..4
//! byte 4..8    high 2 bits of min 4..8   | min 0..4
//! byte 8..12   low 4 bits of min 4..8    | low 4 bits of scale 4..8
//! ```

/// The scales and the minima.
pub(super) fn unpack_scales(bytes: &[u8; 12]) -> ([u8; 8], [u8; 8]) {
    let (mut scales, mut mins) = ([0; 8], [0; 8]);
    for i in 0..4 {
        scales[i] = bytes[i] & 63;
        mins[i] = bytes[4 + i] & 63;
        scales[4 + i] = (bytes[8 + i] & 15) | ((bytes[i] >> 6) << 4);
        mins[4 + i] = (bytes[8 + i] >> 4) | ((bytes[4 + i] >> 6) << 4);
    }
    (scales, mins)
}

/// The inverse of [`unpack_scales`]; every scale and minimum is below 64.
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

    #[test]
    fn packing_undoes_unpacking() {
        let bytes: [u8; 12] = core::array::from_fn(|i| (i * 89 + 5) as u8);
        let (scales, mins) = unpack_scales(&bytes);
        assert_eq!(pack_scales(&scales, &mins), bytes);
    }
}
