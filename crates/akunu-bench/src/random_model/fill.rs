//! Random blocks that a model can compute with.
//!
//! Every bit of a block is random but its scales, which are fixed, finite and small: then the weights
//! spread by about 0.02 around zero, and activations stay finite through all layers. A 16-bit float gets
//! a random sign and fraction and the exponent -6, so that it lies between 1/64 and 1/32 or their
//! negatives, and so does a 32-bit float, unless it scales a norm: then it is one.

use akunu_types::DType;
use half::f16;

/// The sign and the fraction of each of four 16-bit floats.
const F16_RANDOM: u64 = 0x83FF_83FF_83FF_83FF;
/// The exponent -6 of each of them.
const F16_EXPONENT: u64 = 0x2400_2400_2400_2400;
/// The sign and the fraction of each of two 32-bit floats.
const F32_RANDOM: u64 = 0x807F_FFFF_807F_FFFF;
/// The exponent -6 of each of them.
const F32_EXPONENT: u64 = 0x3C80_0000_3C80_0000;

/// The scale of a block.
#[derive(Clone, Copy)]
enum Scale {
    /// 16 bits.
    F16(f32),
    /// This power of two, in the 8 bits of an exponent.
    Power(i8),
}

/// Fills the scales of a norm, or rates, with one number.
pub fn fill_with(number: f32, bytes: &mut [u8]) {
    for value in bytes.chunks_exact_mut(size_of::<f32>()) {
        value.copy_from_slice(&number.to_le_bytes());
    }
}

/// A source of random weights: splitmix64.
pub struct Filler {
    state: u64,
}

impl Filler {
    /// Always the same sequence, so that a file can be made again.
    pub fn new() -> Filler {
        Filler { state: 0 }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Fills whole blocks of this type.
    pub fn fill(&mut self, dtype: DType, bytes: &mut [u8]) {
        match dtype {
            DType::F32 => self.fill_bits(bytes, |bits| bits & F32_RANDOM | F32_EXPONENT),
            DType::F16 => self.fill_bits(bytes, |bits| bits & F16_RANDOM | F16_EXPONENT),
            _ => {
                self.fill_bits(bytes, |bits| bits);
                for block in bytes.chunks_exact_mut(dtype.block_bytes()) {
                    for &(offset, scale) in scales(dtype) {
                        match scale {
                            Scale::F16(scale) => {
                                let bits = f16::from_f32(scale).to_le_bytes();
                                block[offset..offset + 2].copy_from_slice(&bits);
                            }
                            Scale::Power(power) => {
                                block[offset] = 127_u8.wrapping_add_signed(power);
                            }
                        }
                    }
                }
            }
        }
    }

    fn fill_bits(&mut self, bytes: &mut [u8], shape: impl Fn(u64) -> u64) {
        let mut words = bytes.chunks_exact_mut(8);
        for word in &mut words {
            word.copy_from_slice(&shape(self.next()).to_le_bytes());
        }
        let rest = words.into_remainder();
        let last = shape(self.next()).to_le_bytes();
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

/// The scales of a block: where they lie, and the value that gives weights of about 0.02.
///
/// A random 4-bit value spreads by 4.6 around its mean, a 4-bit float by 2.9, a value of 5 bits by 9.2, one of 8 bits by 74. In
/// q4_k the random 6-bit scales multiply this by about 36, and `dmin` is 7.5 times `d`, so that minima
/// cancel the mean of the values. In q6_k the random 8-bit scales multiply 18.5 by 74.
fn scales(dtype: DType) -> &'static [(usize, Scale)] {
    match dtype {
        DType::Q4_0 => &[(0, Scale::F16(0.0043))],
        DType::MXFP4 => &[(0, Scale::Power(-7))],
        DType::Q5_0 => &[(0, Scale::F16(0.0022))],
        DType::Q8_0 => &[(0, Scale::F16(0.000_27))],
        DType::Q4_K => &[(0, Scale::F16(0.000_08)), (2, Scale::F16(0.000_6))],
        DType::Q6_K => &[(208, Scale::F16(0.000_015))],
        _ => unreachable!("no mix has {dtype}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use akunu_gguf::quant::dequantise;

    /// Fails when a scale lies at another place or has another size than its block's formula says.
    #[test]
    fn weights_are_small_and_centred() {
        for dtype in [
            DType::Q4_0,
            DType::MXFP4,
            DType::Q5_0,
            DType::Q8_0,
            DType::Q4_K,
            DType::Q6_K,
        ] {
            let n = 256 * 64;
            let mut bytes = vec![0; dtype.bytes_of(n).expect("whole blocks")];
            Filler::new().fill(dtype, &mut bytes);
            let mut values = vec![0.0; n];
            dequantise(dtype, &bytes, &mut values).expect("valid blocks");
            check(dtype, &values);
        }
        let mut bytes = vec![0; 2 * 4096];
        Filler::new().fill(DType::F16, &mut bytes);
        let halves = bytes.chunks_exact(2);
        let values: Vec<f32> = halves
            .map(|b| f16::from_le_bytes([b[0], b[1]]).to_f32())
            .collect();
        check(DType::F16, &values);
        let mut values = vec![0_f32; 4096];
        Filler::new().fill(DType::F32, bytemuck::cast_slice_mut(&mut values));
        check(DType::F32, &values);
    }

    fn check(dtype: DType, values: &[f32]) {
        let n = values.len() as f32;
        let mean = values.iter().sum::<f32>() / n;
        let spread = (values.iter().map(|v| v * v).sum::<f32>() / n).sqrt();
        assert!(mean.abs() < 0.003, "{dtype}: mean {mean}");
        assert!((0.015..0.03).contains(&spread), "{dtype}: spread {spread}");
    }
}
