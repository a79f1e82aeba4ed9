//! Rows of a weight that no device reads as they lie, and what they become.
//!
//! Integers in groups of whole 32 values become MLX's layout with single-precision scales and biases, `bias = -scale * zero`,
//! which keeps every value. Other integers, and numbers, become Q8_0, which rounds them by at most 1/254 of the largest of 32.

use super::error::TripleFault;
use super::mlx::{Affine, MlxTensor};
use crate::dims::Dims;
use crate::quant::{Part, QuantError, quantise_part};
use crate::span::Span;
use akunu_types::DType;
use std::sync::Mutex;
use std::thread;

/// Values of a block of Q8_0, and of the smallest group of MLX.
const BLOCK: usize = 32;
/// The group sizes of MLX.
const GROUP_SIZES: [usize; 3] = [128, 64, 32];

/// Writes the values, or the codes, of one row.
type Read<'a, T> = Box<dyn Fn(usize, &mut [T]) + Sync + 'a>;

/// The rows of a weight.
pub(crate) struct Rows<'a> {
    rows: usize,
    cols: usize,
    values: Values<'a>,
}

/// A converted weight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    /// Dimensions in values.
    pub dims: Dims,
    pub dtype: DType,
    /// Bytes in memory.
    pub bytes: usize,
}

enum Values<'a> {
    Integers(Integers<'a>),
    Numbers(Read<'a, f32>),
}

/// `scale * (code - zero)`.
pub(super) struct Integers<'a> {
    /// Bits of a code: 2, 3, 4 or 8.
    pub bits: u32,
    pub groups: Groups,
    pub codes: Read<'a, u8>,
    /// The scale and the zero of a row's group.
    pub scale: Box<dyn Fn(usize, usize) -> (f32, f32) + Sync + 'a>,
}

/// Which columns share a scale.
pub(super) enum Groups {
    /// As many after each other.
    InOrder(usize),
    /// The group of each column.
    Listed(Vec<u32>),
}

impl Groups {
    pub fn in_order(len: usize) -> Groups {
        Groups::InOrder(len)
    }

    /// As a list has them; `None` if it names a group from `n` on.
    pub fn listed(
        len: usize,
        n: usize,
        cols: usize,
        group: impl Fn(usize) -> u32,
    ) -> Option<Groups> {
        let mut all = (0..cols).map(&group);
        if !all.all(|group| (group as usize) < n) {
            return None;
        }
        match (0..cols).all(|col| group(col) as usize == col / len) {
            true => Some(Groups::InOrder(len)),
            false => Some(Groups::Listed((0..cols).map(group).collect())),
        }
    }

    fn of(&self, col: usize) -> usize {
        match self {
            Groups::InOrder(len) => col / len,
            Groups::Listed(groups) => groups[col] as usize,
        }
    }
}

impl Integers<'_> {
    /// MLX's bits and groups, and how many of these groups share a scale, if it can have such rows.
    fn affine(&self, cols: usize) -> Option<(Affine, usize)> {
        let Groups::InOrder(len) = self.groups else {
            return None;
        };
        let mut sizes = GROUP_SIZES.into_iter().filter(|_| cols.is_multiple_of(len));
        let size = sizes.find(|&size| len.is_multiple_of(size))?;
        let (bits, group_size) = (self.bits, size as u32);
        Some((Affine { bits, group_size }, len / size))
    }

    fn numbers(&self, row: usize, codes: &mut [u8], out: &mut [f32]) {
        (self.codes)(row, codes);
        let mut last = (usize::MAX, (0.0, 0.0));
        for (col, (number, code)) in out.iter_mut().zip(codes).enumerate() {
            let group = self.groups.of(col);
            if group != last.0 {
                last = (group, (self.scale)(row, group));
            }
            let (scale, zero) = last.1;
            *number = scale * (f32::from(*code) - zero);
        }
    }
}

impl<'a> Rows<'a> {
    pub(super) fn integers([rows, cols]: [usize; 2], integers: Integers<'a>) -> Rows<'a> {
        let values = Values::Integers(integers);
        Rows { rows, cols, values }
    }

    pub(super) fn numbers(
        [rows, cols]: [usize; 2],
        read: impl Fn(usize, &mut [f32]) + Sync + 'a,
    ) -> Rows<'a> {
        let values = Values::Numbers(Box::new(read));
        Rows { rows, cols, values }
    }

    /// The form that they are converted to.
    pub(super) fn becomes(&self) -> Result<Form, TripleFault> {
        let cols = self.cols;
        let dims = Dims::new(&[cols as u64, self.rows as u64]);
        let dims = dims.filter(|dims| dims.cols().is_multiple_of(BLOCK));
        let dims = dims.ok_or(TripleFault::Columns { cols, block: BLOCK })?;
        let affine = match &self.values {
            Values::Integers(integers) => integers.affine(cols),
            Values::Numbers(_) => None,
        };
        let n_values = dims.n_elements();
        let (dtype, bytes) = match affine.map(|(affine, _)| (affine, DType::mlx(affine.bits))) {
            Some((affine, Some(dtype))) => {
                let scales = n_values / affine.group_size as usize * 2 * size_of::<f32>();
                (dtype, dtype.bytes_of(n_values).unwrap_or(0) + scales)
            }
            _ => (DType::Q8_0, DType::Q8_0.bytes_of(n_values).unwrap_or(0)),
        };
        Ok(Form { dims, dtype, bytes })
    }

    /// The converted rows. A value that is not finite is an error.
    pub(super) fn repack(&self) -> Result<Repacked, QuantError> {
        match &self.values {
            Values::Integers(integers) => match integers.affine(self.cols) {
                Some((affine, share)) => Ok(self.affine(integers, affine, share)),
                None => self.blocks(|row, out| {
                    let mut codes = vec![0; self.cols];
                    integers.numbers(row, &mut codes, out);
                }),
            },
            Values::Numbers(read) => self.blocks(read),
        }
    }

    fn affine(&self, integers: &Integers, affine: Affine, share: usize) -> Repacked {
        let bits = affine.bits as usize;
        let row_bytes = self.cols * bits / 8;
        let n_groups = self.cols / affine.group_size as usize;
        let mut packed = vec![0; self.rows * row_bytes];
        in_threads(&mut packed, row_bytes, |row, packed| {
            let mut codes = vec![0; self.cols];
            (integers.codes)(row, &mut codes);
            pack(&codes, bits, packed);
        });
        let both = (0..self.rows)
            .flat_map(|row| (0..n_groups).map(move |group| (integers.scale)(row, group / share)));
        let (scales, biases) = both.map(|(scale, zero)| (scale, -(scale * zero))).unzip();
        Repacked::Affine(OwnedAffine {
            affine,
            rows: self.rows,
            cols: self.cols,
            packed,
            scales,
            biases,
        })
    }

    fn blocks(&self, read: impl Fn(usize, &mut [f32]) + Sync) -> Result<Repacked, QuantError> {
        let dtype = DType::Q8_0;
        let row_bytes = self.cols / dtype.block_len() * dtype.block_bytes();
        let mut blocks = vec![0; self.rows * row_bytes];
        let fault = Mutex::new(None);
        in_threads(&mut blocks, row_bytes, |row, out| {
            let mut values = vec![0.0; self.cols];
            read(row, &mut values);
            let part = Part {
                values: &values,
                importance: None,
                first: row * self.cols,
            };
            if let Err(error) = quantise_part(dtype, part, out)
                && let Ok(mut fault) = fault.lock()
            {
                fault.get_or_insert(error);
            }
        });
        match fault.into_inner() {
            Ok(None) => Ok(Repacked::Blocks(blocks)),
            Ok(Some(error)) => Err(error),
            Err(poisoned) => std::panic::resume_unwind(Box::new(poisoned.to_string())),
        }
    }
}

/// Fills rows of so many bytes, each thread its share of them.
fn in_threads(bytes: &mut [u8], row_bytes: usize, fill: impl Fn(usize, &mut [u8]) + Sync) {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let share = (bytes.len() / row_bytes).div_ceil(threads).max(1);
    thread::scope(|scope| {
        for (at, rows) in bytes.chunks_mut(share * row_bytes).enumerate() {
            let fill = &fill;
            scope.spawn(move || {
                for (row, bytes) in (at * share..).zip(rows.chunks_mut(row_bytes)) {
                    fill(row, bytes);
                }
            });
        }
    });
}

/// Codes of so many bits as a stream, the lowest bits first.
fn pack(codes: &[u8], bits: usize, out: &mut [u8]) {
    let (mut held, mut n_held, mut bytes) = (0u32, 0, out.iter_mut());
    for code in codes {
        held |= u32::from(*code) << n_held;
        n_held += bits;
        while n_held >= 8 {
            if let Some(byte) = bytes.next() {
                *byte = held as u8;
            }
            held >>= 8;
            n_held -= 8;
        }
    }
}

/// A weight in a form that devices read.
#[derive(Clone, Debug, PartialEq)]
pub enum Repacked {
    /// Blocks, row after row.
    Blocks(Vec<u8>),
    /// MLX's integers.
    Affine(OwnedAffine),
}

/// A weight in MLX's affine quantisation, with scales and biases in single precision.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedAffine {
    affine: Affine,
    rows: usize,
    cols: usize,
    packed: Vec<u8>,
    scales: Vec<f32>,
    biases: Vec<f32>,
}

impl OwnedAffine {
    /// The same, borrowed. Its spans lie in no file.
    pub fn tensor(&self) -> MlxTensor<'_> {
        let span = |bytes| Span {
            part: 0,
            offset: 0,
            bytes,
        };
        MlxTensor {
            packed: span(&self.packed),
            scales: span(bytemuck::cast_slice(&self.scales)),
            biases: span(bytemuck::cast_slice(&self.biases)),
            scale_type: DType::F32,
            affine: self.affine,
            rows: self.rows,
            cols: self.cols,
        }
    }
}

impl Repacked {
    /// Puts the rows of another weight behind its own; whether both are of one kind.
    pub fn append(&mut self, other: Repacked) -> bool {
        match (self, other) {
            (Repacked::Blocks(blocks), Repacked::Blocks(more)) => blocks.extend(more),
            (Repacked::Affine(own), Repacked::Affine(more))
                if (own.affine, own.cols) == (more.affine, more.cols) =>
            {
                own.rows += more.rows;
                own.packed.extend(more.packed);
                own.scales.extend(more.scales);
                own.biases.extend(more.biases);
            }
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each width of codes comes back from the stream that MLX has.
    #[test]
    fn integers_keep_their_values_in_mlx_layout() {
        for bits in [2, 3, 4, 8] {
            let code = |row: usize, col: usize| ((row * 31 + col * 7) % (1 << bits)) as u8;
            let scale = |row: usize, group: usize| (0.5 + row as f32, group as f32 + 1.0);
            let rows = Rows::integers(
                [3, 192],
                Integers {
                    bits,
                    groups: Groups::in_order(96),
                    codes: Box::new(move |row, out| {
                        let all = out.iter_mut().enumerate();
                        all.for_each(|(col, found)| *found = code(row, col));
                    }),
                    scale: Box::new(scale),
                },
            );
            let form = rows.becomes().unwrap();
            assert_eq!((form.dims.cols(), form.dims.rows()), (192, 3));
            assert_eq!(Some(form.dtype), DType::mlx(bits));
            let Repacked::Affine(found) = rows.repack().unwrap() else {
                panic!("{bits} bits are not affine");
            };
            let expected = (0..3).flat_map(|row| (0..192).map(move |col| (row, col)));
            let expected = expected.map(|(row, col)| {
                let (scale, zero) = scale(row, col / 96);
                scale * (f32::from(code(row, col)) - zero)
            });
            let tensor = found.tensor();
            assert_eq!(tensor.dequantise(), expected.collect::<Vec<_>>());
            let parts = [tensor.packed, tensor.scales, tensor.biases];
            let bytes: usize = parts.iter().map(|part| part.bytes.len()).sum();
            assert_eq!(bytes, form.bytes);
        }
    }

    #[test]
    fn groups_in_a_list_are_in_order_or_not() {
        let group = |list: &[u32]| Groups::listed(2, 2, list.len(), |col| list[col]);
        assert!(matches!(group(&[0, 0, 1, 1]), Some(Groups::InOrder(2))));
        assert!(matches!(group(&[1, 0, 1, 0]), Some(Groups::Listed(_))));
        assert!(group(&[0, 0, 2, 1]).is_none(), "there are two");
    }
}
