//! Weights in the twins: the values of a row in any format, and random weights for the cases.

mod mlx;
mod random;

use std::ops::Range;

pub use mlx::mlx_constants;
pub(crate) use mlx::{any_scale_type, scattered};

use akunu_program::{MlxLayout, Storage, row_bytes, whole_blocks};
use akunu_types::DType;
use akunu_types::params::MLXParams;
use half::f16;

use crate::case::Rng;
use crate::constant::Constants;
use crate::table::{Args, Launch};

/// A weight matrix in memory: its format, its shape and where its rows lie.
///
/// Sizes come from outside: what does not fill a block is not looked at, neither here nor by the
/// kernels, and a size that overflows saturates, so that the plan check refuses it.
#[derive(Clone, Copy, Debug)]
pub struct WeightLayout {
    /// The format.
    pub dtype: DType,
    /// Number of rows.
    pub rows: usize,
    /// Values of a row.
    pub cols: usize,
    /// Values from one row to the next.
    pub stride: usize,
    /// Where its parts lie.
    pub storage: Storage,
}

/// The function constants of kernels that read weights stored so.
pub fn constants_of(storage: Storage) -> Constants {
    match storage {
        Storage::Rows => Constants::none(),
        Storage::Mlx(layout) => mlx_constants(&layout),
    }
}

impl WeightLayout {
    /// Rows that lie behind one another, in a format that keeps its scales in its blocks.
    pub fn contiguous(dtype: DType, rows: usize, cols: usize) -> WeightLayout {
        WeightLayout {
            dtype,
            rows,
            cols,
            stride: cols,
            storage: Storage::Rows,
        }
    }

    /// Rows of a kernel's format, in `mlx` if it is one of MLX's; function constants go before what that says.
    pub fn of(args: &Args, rows: u32, cols: u32, mlx: MlxLayout) -> WeightLayout {
        WeightLayout {
            storage: Storage::of(args.format(), || mlx::specialised(mlx, args.constants)),
            ..WeightLayout::contiguous(args.format(), rows as usize, cols as usize)
        }
    }

    /// MLX weights as their params describe them.
    pub fn mlx(args: &Args) -> WeightLayout {
        let p: MLXParams = args.params();
        WeightLayout::of(args, p.N, p.K, MlxLayout::of(&p))
    }

    /// Bytes of the binding that the kernels may read, gaps between the parts of MLX weights included.
    pub fn bytes(&self) -> usize {
        let ends = self.parts().into_iter().map(|part| part.end);
        let last = ends.max().unwrap_or(0);
        match self.storage {
            Storage::Rows => last,
            Storage::Mlx(_) => last.checked_next_multiple_of(mlx::WORD).unwrap_or(last),
        }
    }

    /// Bytes that are read if every weight is read once.
    pub fn read_bytes(&self) -> usize {
        let sizes = self.parts().into_iter().map(|part| part.len());
        sizes.fold(0, usize::saturating_add)
    }

    /// The bytes of the binding in which weights lie: the rows, and the scales and biases of MLX weights.
    pub fn parts(&self) -> Vec<Range<usize>> {
        let part = |at: u32, bytes: usize| at as usize..(at as usize).saturating_add(bytes);
        match self.storage {
            Storage::Rows => vec![part(0, self.packed_bytes())],
            Storage::Mlx(mlx) => {
                let scale_bytes = self.scale_bytes(&mlx);
                vec![
                    part(mlx.packed_at, self.packed_bytes()),
                    part(mlx.scales_at, scale_bytes),
                    part(mlx.biases_at, scale_bytes),
                ]
            }
        }
    }

    /// Bytes from the first row to the end of the last one.
    fn packed_bytes(&self) -> usize {
        let rows_before = self.rows.saturating_sub(1);
        rows_before
            .saturating_mul(row_bytes(self.dtype, self.stride))
            .saturating_add(row_bytes(self.dtype, self.cols))
    }

    /// MLX: bytes of all scales, or of all biases.
    fn scale_bytes(&self, mlx: &MlxLayout) -> usize {
        let groups = self.rows.saturating_mul(self.groups(mlx));
        groups.saturating_mul(mlx.scale_type.bytes())
    }

    /// Bytes of one row, with its scales.
    pub fn row_bytes(&self) -> usize {
        let scales = match self.storage {
            Storage::Rows => 0,
            Storage::Mlx(mlx) => self.groups(&mlx) * 2 * mlx.scale_type.bytes(),
        };
        row_bytes(self.dtype, self.cols).saturating_add(scales)
    }

    /// The values of one row.
    pub fn row(&self, bytes: &[u8], index: usize) -> Vec<f32> {
        let row = self.packed_row(bytes, index);
        let mut row = match self.storage {
            Storage::Rows => values(self.dtype, row),
            Storage::Mlx(mlx) => self.mlx_row(&mlx, row, bytes, index),
        };
        row.resize(self.cols, 0.0);
        row
    }

    /// The values of a row as they are stored, without the scales of MLX weights.
    fn packed_row<'b>(&self, bytes: &'b [u8], index: usize) -> &'b [u8] {
        let start =
            self.storage.mlx().packed_at as usize + index * row_bytes(self.dtype, self.stride);
        &bytes[start..start + row_bytes(self.dtype, self.cols)]
    }

    /// `scale * q + bias`; q is the next `bits` bits of a little-endian stream.
    fn mlx_row(&self, mlx: &MlxLayout, packed: &[u8], bytes: &[u8], index: usize) -> Vec<f32> {
        let bits = mlx::bits(self.dtype) as usize;
        let q = |i: usize| {
            let stream = (0..bits).map(|bit| i * bits + bit);
            let bits = stream.map(|at| u32::from(packed[at / 8] >> (at % 8) & 1));
            bits.enumerate().fold(0, |q, (place, bit)| q | bit << place)
        };
        let value = |i: usize| {
            let group = index * self.groups(mlx) + i / mlx.group_len();
            let [scale, bias] = mlx::scale_and_bias(mlx, bytes, group);
            scale * q(i) as f32 + bias
        };
        (0..whole_blocks(self.dtype, self.cols))
            .map(value)
            .collect()
    }

    /// MLX: the packed values of a row from value `first` on, which is the first of its byte, and the scale and
    /// the bias that value has, rounded to halves.
    pub fn mlx_run<'b>(&self, bytes: &'b [u8], row: usize, first: usize) -> (&'b [u8], [f16; 2]) {
        let mlx = self.storage.mlx();
        let packed = self.packed_row(bytes, row);
        let group = row * self.groups(&mlx) + first / mlx.group_len();
        let bits = mlx::bits(self.dtype) as usize;
        let scales = mlx::scale_and_bias(&mlx, bytes, group).map(f16::from_f32);
        (&packed[first * bits / 8..], scales)
    }

    /// MLX: groups of a row.
    fn groups(&self, mlx: &MlxLayout) -> usize {
        whole_blocks(self.dtype, self.cols).div_ceil(mlx.group_len())
    }

    /// Random weights. What lies between the parts of MLX weights is random too.
    pub fn random(&self, rng: &mut Rng) -> Vec<u8> {
        let mlx = match self.storage {
            Storage::Rows => {
                let before = self.rows.saturating_sub(1) * self.stride;
                return random::random(self.dtype, before + self.cols, rng);
            }
            Storage::Mlx(mlx) => mlx,
        };
        let mut bytes = rng.bytes(self.bytes());
        let n_groups = self.rows * self.groups(&mlx);
        let scales = rng.floats(2 * n_groups, 0.02);
        let (scales, biases) = scales.split_at(n_groups);
        for (at, values) in [(mlx.scales_at, scales), (mlx.biases_at, biases)] {
            let stored: Vec<u8> = values
                .iter()
                .flat_map(|&value| mlx::stored(mlx.scale_type, value))
                .collect();
            bytes[at as usize..][..stored.len()].copy_from_slice(&stored);
        }
        bytes
    }
}

/// One thread for each run of 8 values of a row, 128 of them a threadgroup; a row of threadgroups for
/// each row of the matrix.
pub fn run_launch(cols: u32, rows: u32) -> Launch {
    const RUN: u32 = 8;
    const THREADS: u32 = 128;
    Launch::new(
        [cols.div_ceil(RUN).div_ceil(THREADS), rows, 1],
        [THREADS, 1, 1],
    )
}

/// What rows of the cases are whole multiples of: a block, or a group of MLX's formats.
#[cfg(feature = "testing")]
pub(crate) fn case_block(dtype: DType, group_size: u32) -> u32 {
    match dtype.mlx_bits() {
        Some(_) => group_size,
        None => dtype.block_len() as u32,
    }
}

/// Params of MLX weights for the cases: the parts lie in another order, at other bytes and with scales of another type from
/// case to case.
pub fn mlx_params(dtype: DType, rows: u32, cols: u32, group_size: u32) -> MLXParams {
    let scale_type = any_scale_type(rows + cols / 32);
    let layout = scattered(dtype, [rows, cols], group_size, scale_type);
    MLXParams {
        N: rows,
        K: cols,
        group_size,
        packed_at: layout.packed_at,
        scales_at: layout.scales_at,
        biases_at: layout.biases_at,
        scale_type: layout.scale_type.code(),
        ..Default::default()
    }
}

/// The values of plain or block-quantised weights.
///
/// MLX formats keep their scales apart from the values: see [`WeightLayout::row`].
pub fn values(dtype: DType, bytes: &[u8]) -> Vec<f32> {
    let Some(decode) = dtype.decoder() else {
        unreachable!("{dtype} has no kernel that reads it as plain rows")
    };
    let mut values = vec![0.0; bytes.len() / dtype.block_bytes() * dtype.block_len()];
    decode(bytes, &mut values);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2 rows of 64 values, 4 bits, groups of 32: 64 bytes of values, 4 scales, 4 biases.
    fn mlx() -> WeightLayout {
        WeightLayout {
            storage: Storage::contiguous(DType::MLX_Q4, [2, 64], 32),
            ..WeightLayout::contiguous(DType::MLX_Q4, 2, 64)
        }
    }

    #[test]
    fn sizes_follow_the_format() {
        assert_eq!(WeightLayout::contiguous(DType::Q4_0, 3, 64).bytes(), 3 * 36);
        assert_eq!(WeightLayout::contiguous(DType::F16, 3, 7).bytes(), 3 * 14);
        let gaps = WeightLayout {
            stride: 96,
            ..WeightLayout::contiguous(DType::Q4_0, 3, 64)
        };
        assert_eq!(gaps.bytes(), 2 * 54 + 36, "nothing behind the last row");
        assert_eq!(mlx().bytes(), 64 + 2 * 4 + 2 * 4);
        assert_eq!(mlx().read_bytes(), 64 + 2 * 4 + 2 * 4);
        let apart = MlxLayout {
            biases_at: 1001,
            ..mlx().storage.mlx()
        };
        let apart = WeightLayout {
            storage: Storage::Mlx(apart),
            ..mlx()
        };
        assert_eq!(apart.bytes(), 1012, "the last word as a whole");
        assert_eq!(apart.read_bytes(), 80, "gaps are not read");
    }

    /// A size that wrapped around would pass the plan check.
    #[test]
    fn sizes_saturate() {
        let huge = WeightLayout::contiguous(DType::F32, usize::MAX, usize::MAX);
        assert_eq!(huge.bytes(), usize::MAX);
    }

    #[test]
    fn what_does_not_fill_a_block_is_zero() {
        let matrix = WeightLayout::contiguous(DType::Q8_0, 1, 40);
        let mut block = vec![0u8; 34];
        block[..2].copy_from_slice(&f16::ONE.to_le_bytes());
        block[2..].fill(3);
        let row = matrix.row(&block, 0);
        assert_eq!(row, [vec![3.0; 32], vec![0.0; 8]].concat());
    }

    /// No group size divides by zero or leaves the scales.
    #[test]
    fn any_group_size_stays_inside() {
        for group_size in [0, 1, 7, 24, 32, 64, 1000] {
            let matrix = WeightLayout {
                storage: Storage::Mlx(MlxLayout {
                    group_size,
                    ..mlx().storage.mlx()
                }),
                ..mlx()
            };
            let bytes = vec![0u8; matrix.bytes()];
            assert_eq!(matrix.row(&bytes, 1), [0.0; 64]);
        }
    }
}
