//! Random weights for the cases.

use akunu_program::row_bytes;
use akunu_types::block;
use akunu_types::{DType, Scalar};
use half::{bf16, f16};

use crate::case::Rng;

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
        for field in layout.fields.iter().filter(|f| f.scalar == Scalar::F16) {
            let small = f16::from_f32(rng.unit() * 0.02);
            block[field.offset..field.offset + 2].copy_from_slice(&small.to_le_bytes());
        }
    }
    bytes
}
