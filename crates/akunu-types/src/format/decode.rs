//! Bytes of weights to numbers: the loops over blocks.

use super::{Block, CELL};
use bytemuck::{AnyBitPattern, pod_read_unaligned};

/// Decodes bytes into as many values as they hold.
pub type Decoder = fn(&[u8], &mut [f32]);

/// Weights may begin at an odd byte of a foreign buffer, hence the unaligned reads.
pub(super) fn numbers<T: AnyBitPattern + Into<f32>>(bytes: &[u8], values: &mut [f32]) {
    for (bytes, value) in bytes.chunks_exact(size_of::<T>()).zip(values) {
        *value = pod_read_unaligned::<T>(bytes).into();
    }
}

pub(super) fn blocks<B: Block>(bytes: &[u8], values: &mut [f32]) {
    let blocks = bytes.chunks_exact(size_of::<B>());
    for (block, values) in blocks.zip(values.chunks_exact_mut(B::LEN)) {
        let block = pod_read_unaligned::<B>(block);
        for (at, values) in values.as_chunks_mut::<CELL>().0.iter_mut().enumerate() {
            B::FORMAT.values(&block.cell(at), values);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::DType;
    use crate::format::Kind;

    /// A row with the wrong block would cut the bytes at the wrong places: the first block is zero, the
    /// second is not.
    #[test]
    fn every_type_with_blocks_or_numbers_decodes_and_no_other_has_a_decoder() {
        for dtype in DType::all() {
            let has_decoder = matches!(dtype.kind(), Kind::Numbers | Kind::Blocks(_));
            assert_eq!(dtype.decoder().is_some(), has_decoder, "{dtype}");
            let Some(decode) = dtype.decoder() else {
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
        DType::F16.decoder().expect("a decoder")(&bytes[1..], &mut values);
        assert_eq!(values, [1.0, -2.0]);
    }
}
