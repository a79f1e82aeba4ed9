//! The values that a block stands for: the reference for every dequantiser.
//!
//! The order of the operations is ggml's, so that the results agree with it to the bit.

use super::*;

/// A quantised block.
pub trait QuantBlock: SharedStruct {
    /// Values in a block.
    const LEN: usize;

    /// Writes the block's values to `out`, which holds [`QuantBlock::LEN`].
    fn values(&self, out: &mut [f32]);
}

/// Value j of 32 nibbles packed in 16 bytes: low nibbles first, then the high ones.
fn nibble(qs: &[u8; 16], j: usize) -> u8 {
    if j < 16 { qs[j] & 15 } else { qs[j - 16] >> 4 }
}

/// Bit j of 32 bits packed in 4 bytes.
fn bit(qh: &[u8; 4], j: usize) -> u8 {
    qh[j / 8] >> (j % 8) & 1
}

/// The 2-bit value j of 256: byte i of each 32-byte half holds four values that are 32 apart.
fn two_bits(qs: &[u8; 64], j: usize) -> u8 {
    qs[j / 128 * 32 + j % 32] >> (j % 128 / 32 * 2) & 3
}

/// The nibble j of 256: byte i of each 32-byte run holds two values that are 32 apart.
fn nibble_k(qs: &[u8; 128], j: usize) -> u8 {
    qs[j / 64 * 32 + j % 32] >> (j % 64 / 32 * 4) & 15
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
pub fn scale_q3(scales: &[u8; 12], g: usize) -> u8 {
    let low = scales[g % 8] >> (g / 8 * 4) & 15;
    let high = scales[8 + g % 4] >> (g / 4 * 2) & 3;
    low | high << 4
}

impl QuantBlock for BlockQ4_0 {
    const LEN: usize = QK;
    fn values(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (j, value) in out.iter_mut().enumerate() {
            *value = d * (f32::from(nibble(&self.qs, j)) - 8.0);
        }
    }
}

impl QuantBlock for BlockQ4_1 {
    const LEN: usize = QK;
    fn values(&self, out: &mut [f32]) {
        let (d, m) = (self.d.to_f32(), self.m.to_f32());
        for (j, value) in out.iter_mut().enumerate() {
            *value = d * f32::from(nibble(&self.qs, j)) + m;
        }
    }
}

impl QuantBlock for BlockQ5_0 {
    const LEN: usize = QK;
    fn values(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (j, value) in out.iter_mut().enumerate() {
            let q = nibble(&self.qs, j) | bit(&self.qh, j) << 4;
            *value = d * (f32::from(q) - 16.0);
        }
    }
}

impl QuantBlock for BlockQ5_1 {
    const LEN: usize = QK;
    fn values(&self, out: &mut [f32]) {
        let (d, m) = (self.d.to_f32(), self.m.to_f32());
        for (j, value) in out.iter_mut().enumerate() {
            let q = nibble(&self.qs, j) | bit(&self.qh, j) << 4;
            *value = d * f32::from(q) + m;
        }
    }
}

impl QuantBlock for BlockQ8_0 {
    const LEN: usize = QK;
    fn values(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (value, q) in out.iter_mut().zip(self.qs) {
            *value = d * f32::from(q);
        }
    }
}

impl QuantBlock for BlockQ2K {
    const LEN: usize = QK_K;
    fn values(&self, out: &mut [f32]) {
        let (d, dmin) = (self.d.to_f32(), self.dmin.to_f32());
        for (j, value) in out.iter_mut().enumerate() {
            let scale = self.scales[j / 16];
            let (dl, ml) = (d * f32::from(scale & 15), dmin * f32::from(scale >> 4));
            *value = dl * f32::from(two_bits(&self.qs, j)) - ml;
        }
    }
}

impl QuantBlock for BlockQ3K {
    const LEN: usize = QK_K;
    fn values(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (j, value) in out.iter_mut().enumerate() {
            let dl = d * (f32::from(scale_q3(&self.scales, j / 16)) - 32.0);
            let high = self.hmask[j % 32] >> (j / 32) & 1;
            *value = dl * (f32::from(two_bits(&self.qs, j) | high << 2) - 4.0);
        }
    }
}

impl QuantBlock for BlockQ4K {
    const LEN: usize = QK_K;
    fn values(&self, out: &mut [f32]) {
        let (d, dmin) = (self.d.to_f32(), self.dmin.to_f32());
        for (j, value) in out.iter_mut().enumerate() {
            let (scale, min) = scale_and_min(&self.scales, j / 32);
            let (dl, ml) = (d * f32::from(scale), dmin * f32::from(min));
            *value = dl * f32::from(nibble_k(&self.qs, j)) - ml;
        }
    }
}

impl QuantBlock for BlockQ5K {
    const LEN: usize = QK_K;
    fn values(&self, out: &mut [f32]) {
        let (d, dmin) = (self.d.to_f32(), self.dmin.to_f32());
        for (j, value) in out.iter_mut().enumerate() {
            let (scale, min) = scale_and_min(&self.scales, j / 32);
            let (dl, ml) = (d * f32::from(scale), dmin * f32::from(min));
            let high = self.qh[j % 32] >> (j / 32) & 1;
            *value = dl * f32::from(nibble_k(&self.qs, j) | high << 4) - ml;
        }
    }
}

impl QuantBlock for BlockQ6K {
    const LEN: usize = QK_K;
    fn values(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (j, value) in out.iter_mut().enumerate() {
            // Each half of 128 has 64 bytes of nibbles and 32 bytes of high bits.
            let (half, i) = (j / 128, j % 128);
            let low = self.ql[half * 64 + i % 64] >> (i / 64 * 4) & 15;
            let high = self.qh[half * 32 + i % 32] >> (i / 32 * 2) & 3;
            let dl = d * f32::from(self.scales[j / 16]);
            *value = dl * (f32::from(low | high << 4) - 32.0);
        }
    }
}
