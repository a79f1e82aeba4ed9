//! Weights in the twins: the values of a row in any format, and random weights for the cases.

use akunu_types::DType;
use akunu_types::block::{self, QuantBlock};
use half::{bf16, f16};

use crate::case::Rng;

/// Bytes of a row of `cols` values. The plan check calls this with sizes from outside: a row that is
/// not a whole number of blocks counts as one block more, and overflow saturates.
pub fn row_bytes(dtype: DType, cols: usize) -> usize {
    cols.div_ceil(dtype.block_len())
        .saturating_mul(dtype.block_bytes())
}

/// The values of plain or block-quantised weights.
///
/// MLX formats keep their scales apart from the values and are read elsewhere.
pub fn values(dtype: DType, bytes: &[u8]) -> Vec<f32> {
    match dtype {
        DType::F32 => each(bytes, |v: f32| v),
        DType::F16 => each(bytes, f16::to_f32),
        DType::BF16 => each(bytes, bf16::to_f32),
        DType::Q4_0 => blocks::<block::BlockQ4_0>(bytes),
        DType::Q4_1 => blocks::<block::BlockQ4_1>(bytes),
        DType::Q5_0 => blocks::<block::BlockQ5_0>(bytes),
        DType::Q5_1 => blocks::<block::BlockQ5_1>(bytes),
        DType::Q8_0 => blocks::<block::BlockQ8_0>(bytes),
        DType::Q2_K => blocks::<block::BlockQ2K>(bytes),
        DType::Q3_K => blocks::<block::BlockQ3K>(bytes),
        DType::Q4_K => blocks::<block::BlockQ4K>(bytes),
        DType::Q5_K => blocks::<block::BlockQ5K>(bytes),
        DType::Q6_K => blocks::<block::BlockQ6K>(bytes),
        other => unreachable!("{other} has no kernel that reads it as plain rows"),
    }
}

fn each<T: bytemuck::AnyBitPattern>(bytes: &[u8], value: impl Fn(T) -> f32) -> Vec<f32> {
    let chunks = bytes.chunks_exact(size_of::<T>());
    chunks
        .map(|b| value(bytemuck::pod_read_unaligned(b)))
        .collect()
}

fn blocks<B: QuantBlock>(bytes: &[u8]) -> Vec<f32> {
    let mut values = vec![0.0; bytes.len() / size_of::<B>() * B::LEN];
    for (out, block) in values
        .chunks_exact_mut(B::LEN)
        .zip(bytes.chunks_exact(size_of::<B>()))
    {
        bytemuck::pod_read_unaligned::<B>(block).values(out);
    }
    values
}

/// Random weights for `n` values: any bits for the quants, scales of the size found in real models.
pub fn random(dtype: DType, n: usize, rng: &mut Rng) -> Vec<u8> {
    match dtype {
        DType::F32 => bytemuck::cast_slice(&rng.floats(n, 0.5)).to_vec(),
        DType::F16 => bytemuck::cast_slice(&rng.halves(n, 0.5)).to_vec(),
        DType::BF16 => {
            let values: Vec<bf16> = rng.floats(n, 0.5).into_iter().map(bf16::from_f32).collect();
            bytemuck::cast_slice(&values).to_vec()
        }
        _ => random_blocks(dtype, n, rng),
    }
}

/// Random bytes, with each `half` field of the block overwritten by a small number.
fn random_blocks(dtype: DType, n: usize, rng: &mut Rng) -> Vec<u8> {
    let mut bytes = rng.bytes(row_bytes(dtype, n));
    let name = format!("block_{dtype}");
    let Some(layout) = block::ALL.iter().find(|layout| layout.name == name) else {
        return bytes;
    };
    for block in bytes.chunks_exact_mut(layout.size) {
        for field in layout
            .fields
            .iter()
            .filter(|f| f.scalar == akunu_types::Scalar::F16)
        {
            let small = f16::from_f32(rng.unit() * 0.02);
            block[field.offset..field.offset + 2].copy_from_slice(&small.to_le_bytes());
        }
    }
    bytes
}
