//! Bytes of weights to numbers: the loops over blocks, and the decoder of each type.

use super::*;
use crate::DType;
use bytemuck::{AnyBitPattern, pod_read_unaligned};
use half::bf16;

/// Decodes bytes into as many values as they hold.
pub type Decoder = fn(&[u8], &mut [f32]);

/// The decoder of plain and block-quantised weights. MLX's types keep their scales apart and have none.
pub fn decoder(dtype: DType) -> Option<Decoder> {
    Some(match dtype {
        DType::F32 => numbers::<f32>,
        DType::F16 => numbers::<f16>,
        DType::BF16 => numbers::<bf16>,
        DType::Q4_0 => blocks::<BlockQ4_0>,
        DType::Q4_1 => blocks::<BlockQ4_1>,
        DType::Q5_0 => blocks::<BlockQ5_0>,
        DType::Q5_1 => blocks::<BlockQ5_1>,
        DType::Q8_0 => blocks::<BlockQ8_0>,
        DType::Q2_K => blocks::<BlockQ2K>,
        DType::Q3_K => blocks::<BlockQ3K>,
        DType::Q4_K => blocks::<BlockQ4K>,
        DType::Q5_K => blocks::<BlockQ5K>,
        DType::Q6_K => blocks::<BlockQ6K>,
        _ => return None,
    })
}

/// Weights may begin at an odd byte of a foreign buffer, hence the unaligned reads.
fn numbers<T: AnyBitPattern + Into<f32>>(bytes: &[u8], values: &mut [f32]) {
    for (bytes, value) in bytes.chunks_exact(size_of::<T>()).zip(values) {
        *value = pod_read_unaligned::<T>(bytes).into();
    }
}

fn blocks<B: QuantBlock>(bytes: &[u8], values: &mut [f32]) {
    let blocks = bytes.chunks_exact(size_of::<B>());
    for (block, values) in blocks.zip(values.chunks_exact_mut(B::LEN)) {
        pod_read_unaligned::<B>(block).values(values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row with the wrong block would cut the bytes at the wrong places: the first block is zero, the
    /// second is not.
    #[test]
    fn every_usable_type_decodes_whole_blocks_and_no_other_has_a_decoder() {
        for dtype in DType::all() {
            let Some(decode) = decoder(dtype) else {
                assert!(!dtype.is_usable() || dtype.is_mlx(), "{dtype}");
                continue;
            };
            let (n, size) = (dtype.block_len(), dtype.block_bytes());
            let mut bytes = vec![0; size];
            bytes.extend((0..size).map(|i| 0x11 + (i % 7) as u8));
            let mut values = vec![f32::NAN; 2 * n];
            decode(&bytes, &mut values);
            assert!(values[..n].iter().all(|v| *v == 0.0), "{dtype}");
            assert!(values[n..].iter().all(|v| v.is_finite()), "{dtype}");
            assert!(values[n..].iter().any(|v| *v != 0.0), "{dtype}");
        }
    }

    #[test]
    fn numbers_are_read_at_odd_bytes() {
        let mut values = [0.0; 2];
        let bytes = [0, 0, 0x3c, 0, 0xc0];
        decoder(DType::F16).expect("a decoder")(&bytes[1..], &mut values);
        assert_eq!(values, [1.0, -2.0]);
    }
}
