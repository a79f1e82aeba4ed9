//! Random weights for the cases.

use akunu_program::row_bytes;
use akunu_types::format::{Block, Kind, WithBlock};
use akunu_types::{DType, Scalar};
use half::f16;

use crate::case::Rng;

/// Random weights for `n` values: any bits for the quants, scales of the size found in real models.
pub fn random(dtype: DType, n: usize, rng: &mut Rng) -> Vec<u8> {
    if dtype.kind() == Kind::Numbers
        && let Some(numbers) = dtype.rounded(&rng.floats(n, 0.5))
    {
        return numbers;
    }
    let mut bytes = rng.bytes(row_bytes(dtype, n));
    dtype.with_block(SmallScales(&mut bytes, rng));
    bytes
}

/// Overwrites each scale of blocks with a small number.
struct SmallScales<'a>(&'a mut [u8], &'a mut Rng);

impl WithBlock for SmallScales<'_> {
    type Out = ();

    fn run<B: Block>(self) {
        let SmallScales(bytes, rng) = self;
        for block in bytes.chunks_exact_mut(size_of::<B>()) {
            for field in B::LAYOUT.fields {
                let field_bytes = &mut block[field.offset..field.offset + field.size()];
                match field.scalar {
                    Scalar::F16 => {
                        let small = f16::from_f32(rng.unit() * 0.02);
                        field_bytes.copy_from_slice(&small.to_le_bytes());
                    }
                    // 2^-9 to 2^-6.
                    Scalar::E8M0 => field_bytes.fill(118 + rng.below(4) as u8),
                    Scalar::QuarterF16 => {
                        let small = f16::from_f32(rng.unit() * 0.02).to_bits();
                        for (at, quarter) in field_bytes.chunks_exact_mut(2).enumerate() {
                            quarter[1] = quarter[1] & 15 | (small >> (4 * at) << 4) as u8;
                        }
                    }
                    Scalar::U8 | Scalar::I8 | Scalar::U16 | Scalar::U32 | Scalar::F32 => {}
                }
            }
        }
    }
}
