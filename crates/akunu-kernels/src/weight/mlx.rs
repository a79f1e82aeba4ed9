//! Where MLX weights lie: three arrays anywhere in one binding, such as a mapped file.

use akunu_types::DType;
use akunu_types::params::MLXParams;
use half::{bf16, f16};

use super::{mlx_bits, row_bytes};
use crate::constant::{Constant, Constants};

/// Kernels read whole words: a binding begins at a multiple of this many bytes, and ends with one.
pub(super) const WORD: usize = 4;

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

    /// The type that a file calls so; `None` where kernels cannot read it.
    pub fn of(dtype: DType) -> Option<ScaleType> {
        let mut all = ScaleType::ALL.into_iter();
        all.find(|scale_type| scale_type.dtype() == dtype)
    }

    const fn dtype(self) -> DType {
        match self {
            ScaleType::F16 => DType::F16,
            ScaleType::BF16 => DType::BF16,
            ScaleType::F32 => DType::F32,
        }
    }

    /// The number that stands for it in params.
    pub fn code(self) -> u32 {
        self as u32
    }

    /// A type for the cases, another one for other numbers.
    pub(crate) fn any(number: u32) -> ScaleType {
        ScaleType::of_code(number % 3)
    }

    /// The type of a number; kernels take one that they do not know for f32, of which nothing is read twice.
    fn of_code(code: u32) -> ScaleType {
        *ScaleType::ALL.get(code as usize).unwrap_or(&ScaleType::F32)
    }

    /// Bytes of a scale.
    pub fn bytes(self) -> usize {
        match self {
            ScaleType::F16 | ScaleType::BF16 => 2,
            ScaleType::F32 => 4,
        }
    }

    /// A scale as it is stored.
    pub(super) fn stored(self, value: f32) -> Vec<u8> {
        match self {
            ScaleType::F16 => f16::from_f32(value).to_le_bytes().to_vec(),
            ScaleType::BF16 => bf16::from_f32(value).to_le_bytes().to_vec(),
            ScaleType::F32 => value.to_le_bytes().to_vec(),
        }
    }

    /// Scale number `index` of those that begin at byte `at`.
    fn read(self, bytes: &[u8], at: u32, index: usize) -> f32 {
        let at = at as usize + index * self.bytes();
        let two = [bytes[at], bytes[at + 1]];
        match self {
            ScaleType::F16 => f16::from_le_bytes(two).to_f32(),
            ScaleType::BF16 => bf16::from_le_bytes(two).to_f32(),
            ScaleType::F32 => f32::from_le_bytes([two[0], two[1], bytes[at + 2], bytes[at + 3]]),
        }
    }
}

/// The parts of MLX weights in their binding.
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

    /// A layout for the cases: which part comes first and the byte at which each begins depend on the shape.
    pub(crate) fn scattered(
        dtype: DType,
        [rows, cols]: [u32; 2],
        group_size: u32,
        scale_type: ScaleType,
    ) -> MlxLayout {
        let pick = rows + cols / 32 + mlx_bits(dtype);
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

    /// What a kernel takes from its params beside the places.
    pub fn grouped(group_size: u32, scale_type: u32) -> MlxLayout {
        MlxLayout {
            group_size,
            scale_type: ScaleType::of_code(scale_type),
            ..MlxLayout::default()
        }
    }

    /// The same with what function constants say.
    pub(super) fn specialised(self, constants: &Constants) -> MlxLayout {
        let scale_type = constants.u32(Constant::ScaleType);
        MlxLayout {
            group_size: constants
                .u32(Constant::GroupSize)
                .unwrap_or(self.group_size),
            scale_type: scale_type.map_or(self.scale_type, ScaleType::of_code),
            ..self
        }
    }

    /// Values of a group, in whole runs of 8.
    pub(super) fn group_len(&self) -> usize {
        (self.group_size as usize / 8).max(1) * 8
    }

    /// The function constants of kernels that read such weights.
    pub fn constants(&self) -> Constants {
        Constants::none()
            .with_u32(Constant::GroupSize, self.group_size)
            .with_u32(Constant::ScaleType, self.scale_type.code())
    }

    /// The scale and the bias of a group, counted over all rows.
    pub(super) fn scale_and_bias(&self, bytes: &[u8], group: usize) -> [f32; 2] {
        [self.scales_at, self.biases_at].map(|at| self.scale_type.read(bytes, at, group))
    }
}
