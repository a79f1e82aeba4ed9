//! Where MLX weights lie: three arrays anywhere in one binding, such as a mapped file.

use akunu_types::DType;
use akunu_types::params::MLXParams;

use crate::format::row_bytes;

/// How scales and biases are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScaleType {
    /// Half precision.
    #[default]
    F16,
    /// The upper half of a float.
    BF16,
    /// Single precision.
    F32,
}

impl ScaleType {
    /// Every type, in the order of [`ScaleType::code`].
    const ALL: [ScaleType; 3] = [ScaleType::F16, ScaleType::BF16, ScaleType::F32];

    /// The type of scales that a file stores in this format; `None` where kernels cannot read it.
    pub fn of(dtype: DType) -> Option<ScaleType> {
        match dtype {
            DType::F16 => Some(ScaleType::F16),
            DType::BF16 => Some(ScaleType::BF16),
            DType::F32 => Some(ScaleType::F32),
            _ => None,
        }
    }

    /// The number that stands for it in params.
    pub fn code(self) -> u32 {
        self as u32
    }

    /// The type of a number; kernels take one that they do not know for f32, of which nothing is read twice.
    pub fn of_code(code: u32) -> ScaleType {
        *ScaleType::ALL.get(code as usize).unwrap_or(&ScaleType::F32)
    }

    /// Bytes of a scale.
    pub fn bytes(self) -> usize {
        match self {
            ScaleType::F16 | ScaleType::BF16 => 2,
            ScaleType::F32 => 4,
        }
    }
}

/// The parts of MLX weights in their binding. All zeros for other formats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MlxLayout {
    /// Values that share a scale and a bias.
    pub group_size: u32,
    /// Type of scales and biases.
    pub scale_type: ScaleType,
    /// Byte offset of the packed values.
    pub packed_at: u32,
    /// Byte offset of the scales.
    pub scales_at: u32,
    /// Byte offset of the biases.
    pub biases_at: u32,
}

impl MlxLayout {
    /// `[packed values | scales | biases]`, for [rows, cols].
    pub fn contiguous(
        dtype: DType,
        [rows, cols]: [u32; 2],
        group_size: u32,
        scale_type: ScaleType,
    ) -> MlxLayout {
        let scales_at = rows * row_bytes(dtype, cols as usize) as u32;
        let scales = rows * cols / group_size * scale_type.bytes() as u32;
        MlxLayout {
            group_size,
            scale_type,
            packed_at: 0,
            scales_at,
            biases_at: scales_at + scales,
        }
    }

    /// As params describe it.
    pub fn of(p: &MLXParams) -> MlxLayout {
        MlxLayout {
            group_size: p.group_size,
            scale_type: ScaleType::of_code(p.scale_type),
            packed_at: p.packed_at,
            scales_at: p.scales_at,
            biases_at: p.biases_at,
        }
    }

    /// The same at other places: those of packed values, scales and biases.
    pub fn at(self, [packed_at, scales_at, biases_at]: [u32; 3]) -> MlxLayout {
        MlxLayout {
            packed_at,
            scales_at,
            biases_at,
            ..self
        }
    }

    /// The group size and the type of scales that params give, with all places zero.
    pub fn grouped(group_size: u32, scale_type: u32) -> MlxLayout {
        MlxLayout {
            group_size,
            scale_type: ScaleType::of_code(scale_type),
            ..MlxLayout::default()
        }
    }
}
