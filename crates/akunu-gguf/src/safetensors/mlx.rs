//! A weight in MLX's affine quantisation.
//!
//! `value = scale * q + bias`, with one scale and one bias for each group of `group_size` values of a
//! row. The q of a row are one little-endian stream of bits: value i is bits `i * bits` up to
//! `(i + 1) * bits`. Seen in larger units that is eight 4-bit values in a 32-bit word, eight 3-bit
//! values in 3 bytes, eight 5-bit values in 5, four 6-bit values in 3.

use crate::span::Span;
use akunu_types::DType;

/// Bits and group size of an affine quantisation: `value = scale * q + bias`, one scale and one bias
/// for each group of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Affine {
    /// Bits of a packed value: 2, 3, 4, 5, 6 or 8.
    pub bits: u32,
    /// Values that share a scale and a bias: 32, 64 or 128.
    pub group_size: u32,
}

/// A quantised weight, its three parts borrowed from the file.
#[derive(Clone, Copy, Debug)]
pub struct MlxTensor<'a> {
    /// The packed values, row after row.
    pub packed: Span<'a>,
    /// The scales, (rows, groups).
    pub scales: Span<'a>,
    /// The biases, (rows, groups).
    pub biases: Span<'a>,
    /// Type of the scales and of the biases: F16, BF16 or F32.
    pub scale_type: DType,
    /// Bits and group size.
    pub affine: Affine,
    /// Number of rows.
    pub rows: usize,
    /// Values in a row.
    pub cols: usize,
}

/// A slice that should hold one row has another length than the tensor's rows, or there is no such
/// row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("row {row} of {rows} rows of {cols} values was asked for with a slice of {found}")]
pub struct RowError {
    /// The row asked for.
    pub row: usize,
    /// Rows that there are.
    pub rows: usize,
    /// Values in a row.
    pub cols: usize,
    /// Length of the slice given.
    pub found: usize,
}

impl MlxTensor<'_> {
    /// Groups in a row.
    pub fn groups(&self) -> usize {
        self.cols / self.affine.group_size as usize
    }

    /// Writes the values of one row. The arithmetic is that of `mlx.core.dequantize` with scales and
    /// biases widened to f32: a product, rounded, then a sum, rounded.
    pub fn dequantise_row(&self, row: usize, out: &mut [f32]) -> Result<(), RowError> {
        let error = RowError {
            row,
            rows: self.rows,
            cols: self.cols,
            found: out.len(),
        };
        if out.len() != self.cols || row >= self.rows {
            return Err(error);
        }
        let row_bytes = self.packed.bytes.len() / self.rows;
        let packed = &self.packed.bytes[row * row_bytes..][..row_bytes];
        let groups = out.chunks_exact_mut(self.affine.group_size as usize);
        for (group, values) in groups.enumerate() {
            let at = row * self.groups() + group;
            let scale = self.scale_at(self.scales, at);
            let bias = self.scale_at(self.biases, at);
            let first = group * self.affine.group_size as usize;
            for (i, value) in values.iter_mut().enumerate() {
                let q = unpack(packed, self.affine.bits as usize, first + i);
                *value = scale * f32::from(q) + bias;
            }
        }
        Ok(())
    }

    /// All values, row after row.
    pub fn dequantise(&self) -> Vec<f32> {
        let mut values = vec![0.0; self.rows * self.cols];
        for (row, out) in values.chunks_exact_mut(self.cols).enumerate() {
            // A row of our own cutting always fits.
            let _fits = self.dequantise_row(row, out);
        }
        values
    }

    /// Scale or bias number `at`, counted over all rows.
    fn scale_at(&self, part: Span<'_>, at: usize) -> f32 {
        let size = self.scale_type.block_bytes();
        let mut value = [0.0];
        if let Some(decode) = self.scale_type.decoder() {
            decode(&part.bytes[at * size..][..size], &mut value);
        }
        value[0]
    }
}

/// Value `at` of a little-endian stream of `bits`-bit values. A value touches at most two bytes.
fn unpack(stream: &[u8], bits: usize, at: usize) -> u8 {
    let (byte, shift) = (at * bits / 8, at * bits % 8);
    let low = u16::from(stream[byte]);
    let high = stream.get(byte + 1).map_or(0, |&next| u16::from(next));
    let mask = (1u16 << bits) - 1;
    (((high << 8 | low) >> shift) & mask) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The packings as MLX describes them, unit by unit: a stream read in another bit order fails.
    #[test]
    fn units_are_packed_as_documented() {
        let word = 0x8765_4321_u32.to_le_bytes();
        let nibbles: Vec<u8> = (0..8).map(|i| unpack(&word, 4, i)).collect();
        assert_eq!(nibbles, [1, 2, 3, 4, 5, 6, 7, 8]);

        let three_bytes = 0o76543210_u32.to_le_bytes();
        let threes: Vec<u8> = (0..8).map(|i| unpack(&three_bytes[..3], 3, i)).collect();
        assert_eq!(threes, [0, 1, 2, 3, 4, 5, 6, 7]);

        let sixes_word = (1u32 | 2 << 6 | 33 << 12 | 63 << 18).to_le_bytes();
        let sixes: Vec<u8> = (0..4).map(|i| unpack(&sixes_word[..3], 6, i)).collect();
        assert_eq!(sixes, [1, 2, 33, 63]);
    }
}
