//! Weights in the twins: the values of a row in any format, and random weights for the cases.

mod random;

use akunu_types::DType;
use akunu_types::block::decoder;
use akunu_types::params::MLXParams;
use half::f16;

use crate::case::Rng;
use crate::constant::Constant;
use crate::table::{Args, Launch};

/// The format in which kernels read vectors: norms and biases.
pub const VECTOR: DType = DType::F32;

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
    /// MLX: values that share a scale and a bias.
    pub group_size: usize,
    /// MLX: byte offset of the scales.
    pub scales_at: usize,
}

impl WeightLayout {
    /// Rows that lie behind one another, in a format that keeps its scales in its blocks.
    pub fn contiguous(dtype: DType, rows: usize, cols: usize) -> WeightLayout {
        WeightLayout {
            dtype,
            rows,
            cols,
            stride: cols,
            group_size: 0,
            scales_at: 0,
        }
    }

    /// Contiguous rows of a kernel's format; `mlx` is the group size, before which the function constant
    /// goes, and the offset of the scales.
    pub fn of(args: &Args, rows: u32, cols: u32, mlx: (u32, u32)) -> WeightLayout {
        let group_size = args.constants.u32(Constant::GroupSize).unwrap_or(mlx.0);
        WeightLayout {
            group_size: group_size as usize,
            scales_at: mlx.1 as usize,
            ..WeightLayout::contiguous(args.format(), rows as usize, cols as usize)
        }
    }

    /// MLX weights as their params describe them.
    pub fn mlx(args: &Args) -> WeightLayout {
        let p: MLXParams = args.params();
        WeightLayout::of(args, p.N, p.K, (p.group_size, p.weight_bytes))
    }

    /// Bytes that the kernels may read.
    pub fn bytes(&self) -> usize {
        let rows_before = self.rows.saturating_sub(1);
        let packed = rows_before
            .saturating_mul(row_bytes(self.dtype, self.stride))
            .saturating_add(row_bytes(self.dtype, self.cols));
        if !self.dtype.is_mlx() {
            return packed;
        }
        let halves = self.rows.saturating_mul(self.groups()).saturating_mul(2);
        packed.max(self.scales_at.saturating_add(halves.saturating_mul(2)))
    }

    /// Bytes of one row, with its scales.
    pub fn row_bytes(&self) -> usize {
        let scales = if self.dtype.is_mlx() {
            self.groups() * 4
        } else {
            0
        };
        row_bytes(self.dtype, self.cols).saturating_add(scales)
    }

    /// The values of one row.
    pub fn row(&self, bytes: &[u8], index: usize) -> Vec<f32> {
        let start = index * row_bytes(self.dtype, self.stride);
        let row = &bytes[start..start + row_bytes(self.dtype, self.cols)];
        let mut row = if self.dtype.is_mlx() {
            self.mlx_row(row, bytes, index)
        } else {
            values(self.dtype, row)
        };
        row.resize(self.cols, 0.0);
        row
    }

    /// `scale * q + bias`; q is the next `bits` bits of a little-endian stream.
    fn mlx_row(&self, packed: &[u8], bytes: &[u8], index: usize) -> Vec<f32> {
        let bits = mlx_bits(self.dtype) as usize;
        let half = |at: usize| {
            let at = (self.scales_at & !1) + 2 * at;
            f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32()
        };
        let q = |i: usize| {
            let stream = (0..bits).map(|bit| i * bits + bit);
            let bits = stream.map(|at| u32::from(packed[at / 8] >> (at % 8) & 1));
            bits.enumerate().fold(0, |q, (place, bit)| q | bit << place)
        };
        let value = |i: usize| {
            let group = index * self.groups() + i / self.group_len();
            half(group) * q(i) as f32 + half(self.rows * self.groups() + group)
        };
        (0..whole_blocks(self.dtype, self.cols))
            .map(value)
            .collect()
    }

    /// MLX: the packed values of a row from value `first` on, which is the first of its byte, and the scale and
    /// the bias that value has.
    pub fn mlx_run<'b>(&self, bytes: &'b [u8], row: usize, first: usize) -> (&'b [u8], [f16; 2]) {
        let start = row * row_bytes(self.dtype, self.stride);
        let packed = &bytes[start..start + row_bytes(self.dtype, self.cols)];
        let half = |at: usize| {
            let at = (self.scales_at & !1) + 2 * at;
            f16::from_le_bytes([bytes[at], bytes[at + 1]])
        };
        let group = row * self.groups() + first / self.group_len();
        let bits = mlx_bits(self.dtype) as usize;
        let scales = [half(group), half(self.rows * self.groups() + group)];
        (&packed[first * bits / 8..], scales)
    }

    /// MLX: values of a group, in whole runs of 8.
    fn group_len(&self) -> usize {
        (self.group_size / 8).max(1) * 8
    }

    /// MLX: groups of a row.
    fn groups(&self) -> usize {
        whole_blocks(self.dtype, self.cols).div_ceil(self.group_len())
    }

    /// Random weights.
    pub fn random(&self, rng: &mut Rng) -> Vec<u8> {
        if !self.dtype.is_mlx() {
            let before = self.rows.saturating_sub(1) * self.stride;
            return random::random(self.dtype, before + self.cols, rng);
        }
        let mut bytes = rng.bytes(self.scales_at);
        let halves = rng.halves(2 * self.rows * self.groups(), 0.02);
        bytes.extend_from_slice(bytemuck::cast_slice(&halves));
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

/// Bits of a packed value.
fn mlx_bits(dtype: DType) -> u32 {
    (dtype.block_bytes() * 8 / dtype.block_len()) as u32
}

/// Params of MLX weights whose scales follow the packed values at once, for the cases.
pub fn mlx_params(dtype: DType, rows: u32, cols: u32, group_size: u32) -> MLXParams {
    MLXParams {
        N: rows,
        K: cols,
        group_size,
        bits: mlx_bits(dtype),
        weight_bytes: rows * cols * mlx_bits(dtype) / 8,
        ..Default::default()
    }
}

/// MLX rows are whole numbers of this many values, whatever the width.
const MLX_BLOCK: usize = 32;

/// The values of a row of `cols` that fill blocks.
fn whole_blocks(dtype: DType, cols: usize) -> usize {
    let block = if dtype.is_mlx() {
        MLX_BLOCK
    } else {
        dtype.block_len()
    };
    cols / block * block
}

/// Bytes of a row of `cols` values.
fn row_bytes(dtype: DType, cols: usize) -> usize {
    (whole_blocks(dtype, cols) / dtype.block_len()).saturating_mul(dtype.block_bytes())
}

/// The values of plain or block-quantised weights.
///
/// MLX formats keep their scales apart from the values: see [`WeightLayout::row`].
pub fn values(dtype: DType, bytes: &[u8]) -> Vec<f32> {
    let Some(decode) = decoder(dtype) else {
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
            group_size: 32,
            scales_at: 64,
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
                group_size,
                ..mlx()
            };
            let bytes = vec![0u8; matrix.bytes()];
            assert_eq!(matrix.row(&bytes, 1), [0.0; 64]);
        }
    }
}
