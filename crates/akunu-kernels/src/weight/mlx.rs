//! MLX weights as kernels see them: their function constants, and their scales and biases.

use akunu_program::{MlxLayout, ScaleType, row_bytes};
use akunu_types::DType;
use half::{bf16, f16};

use crate::constant::{Constant, Constants};

/// Kernels read whole words: a binding begins at a multiple of this many bytes, and ends with one.
pub(super) const WORD: usize = 4;

/// Bits of a packed value.
pub(super) fn bits(dtype: DType) -> u32 {
    (dtype.block_bytes() * 8 / dtype.block_len()) as u32
}

/// A type of scales for the cases, another one for other numbers.
pub(crate) fn any_scale_type(number: u32) -> ScaleType {
    ScaleType::of_code(number % 3)
}

/// A scale as it is stored.
pub(super) fn stored(scale_type: ScaleType, value: f32) -> Vec<u8> {
    match scale_type {
        ScaleType::F16 => f16::from_f32(value).to_le_bytes().to_vec(),
        ScaleType::BF16 => bf16::from_f32(value).to_le_bytes().to_vec(),
        ScaleType::F32 => value.to_le_bytes().to_vec(),
    }
}

/// Scale number `index` of those that begin at byte `at`.
fn read(scale_type: ScaleType, bytes: &[u8], at: u32, index: usize) -> f32 {
    let at = at as usize + index * scale_type.bytes();
    let two = [bytes[at], bytes[at + 1]];
    match scale_type {
        ScaleType::F16 => f16::from_le_bytes(two).to_f32(),
        ScaleType::BF16 => bf16::from_le_bytes(two).to_f32(),
        ScaleType::F32 => f32::from_le_bytes([two[0], two[1], bytes[at + 2], bytes[at + 3]]),
    }
}

/// A layout for the cases: which part comes first and the byte at which each begins depend on the shape.
pub(crate) fn scattered(
    dtype: DType,
    [rows, cols]: [u32; 2],
    group_size: u32,
    scale_type: ScaleType,
) -> MlxLayout {
    let pick = rows + cols / 32 + bits(dtype);
    let packed = rows * row_bytes(dtype, cols as usize) as u32;
    let scales = rows * cols / group_size * scale_type.bytes() as u32;
    let orders = [[0, 1, 2], [2, 1, 0], [1, 0, 2], [2, 0, 1]];
    let (mut at, mut end) = ([0; 3], 0);
    for part in orders[(pick / 2) as usize % orders.len()] {
        at[part] = end + pick % 4;
        end = at[part] + [packed, scales, scales][part];
    }
    MlxLayout {
        group_size,
        scale_type,
        ..MlxLayout::default()
    }
    .at(at)
}

/// The layout with what function constants say.
pub(super) fn specialised(layout: MlxLayout, constants: &Constants) -> MlxLayout {
    let scale_type = constants.u32(Constant::ScaleType);
    MlxLayout {
        group_size: constants
            .u32(Constant::GroupSize)
            .unwrap_or(layout.group_size),
        scale_type: scale_type.map_or(layout.scale_type, ScaleType::of_code),
        ..layout
    }
}

/// The function constants of kernels that read such weights.
pub fn mlx_constants(layout: &MlxLayout) -> Constants {
    Constants::none()
        .with_u32(Constant::GroupSize, layout.group_size)
        .with_u32(Constant::ScaleType, layout.scale_type.code())
}

/// The scale and the bias of a group, counted over all rows.
pub(super) fn scale_and_bias(layout: &MlxLayout, bytes: &[u8], group: usize) -> [f32; 2] {
    [layout.scales_at, layout.biases_at].map(|at| read(layout.scale_type, bytes, at, group))
}
