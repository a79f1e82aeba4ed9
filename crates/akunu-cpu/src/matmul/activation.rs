//! Activations as 16-bit numbers: `x = scale * v` with one scale for each cell of 32 columns.
//!
//! One byte, as other engines use it, would lose precision that the weights of a good file still have. Where instructions
//! multiply bytes, `v` is kept as two, `v = 256 q + r`: reading the weights takes longer than multiplying twice.
//!
//! A product of stored weights `w = s * (u - offset) + min` with such a cell is
//!
//! ```text
//! Σ w x = scale * s * (Σ u v - offset Σ v)  +  min * scale * Σ v
//! ```
//!
//! so that beside the numbers themselves only their sums are needed: `-offset Σ v` is where the integer sum starts,
//! `scale Σ v` is the weight of the minimum. All are kept for each half of a cell too, since some formats have a
//! scale for 16 columns: an 8-bit integer `t`, which is multiplied as one, `s = d t`.
//!
//! The largest `v` is 2¹⁴ - 1, so that no sum of a cell overflows: `32 * (32 * 128) * (2¹⁴ - 1) < 2³¹` for 6 bits and
//! such scales. Integer sums are exact, whatever their order.

use crate::panels::format::CELL;

/// Columns that share a start.
#[cfg(target_arch = "aarch64")]
pub const HALF: usize = CELL / 2;
/// The largest of the 16-bit numbers.
pub const LARGEST: f32 = 16_383.0;

/// One vector of activations, cell by cell. The memory is reused from product to product.
#[derive(Default)]
pub struct Activations {
    /// The numbers of a cell, in the order that the instructions want: bytes `q`, then bytes `r`; or words.
    pub values: Vec<Values>,
    /// A scale for each cell.
    pub scales: Vec<f32>,
    /// `-offset Σ v` of both halves of a cell.
    pub starts: Vec<[i32; 2]>,
    /// `scale Σ v` of each cell.
    pub weights_of_min: Vec<f32>,
    /// The same of both halves of a cell.
    pub weights_of_half_mins: Vec<[f32; 2]>,
}

/// The numbers of a cell.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Values(pub [i8; 2 * CELL]);

#[cfg(target_arch = "aarch64")]
impl Values {
    /// Four bytes in each word.
    pub fn words(&self) -> [u32; CELL / 2] {
        let (words, _) = self.0.as_chunks::<4>();
        std::array::from_fn(|k| u32::from_le_bytes(words[k].map(i8::cast_unsigned)))
    }
}

/// What a quantised cell has beside its numbers: the scale, and the sums of v in both halves.
pub type ScaleAndSums = (f32, [i32; 2]);

impl Activations {
    /// Quantises `x`, each cell in the way of `quantise_cell`; a last cell that is not full is filled with zeros.
    ///
    /// Inlined, so that it is compiled with the vector instructions of its caller.
    #[inline(always)]
    pub fn quantise_with(
        &mut self,
        x: &[f32],
        offset: i32,
        quantise_cell: impl Fn(&[f32; CELL], &mut Values) -> ScaleAndSums,
    ) {
        let cells = x.len().div_ceil(CELL);
        self.values.resize(cells, Values([0; 2 * CELL]));
        self.scales.resize(cells, 0.0);
        self.starts.resize(cells, [0; 2]);
        self.weights_of_min.resize(cells, 0.0);
        self.weights_of_half_mins.resize(cells, [0.0; 2]);
        let (full, rest) = x.as_chunks::<CELL>();
        let mut last = [0.0; CELL];
        last[..rest.len()].copy_from_slice(rest);
        for (at, values) in self.values.iter_mut().enumerate() {
            let (scale, sums) = quantise_cell(full.get(at).unwrap_or(&last), values);
            self.scales[at] = scale;
            // NaN has a scale of NaN, and sums that may wrap around.
            self.starts[at] = sums.map(|sum| sum.wrapping_mul(-offset));
            self.weights_of_min[at] = scale * sums[0].wrapping_add(sums[1]) as f32;
            self.weights_of_half_mins[at] = sums.map(|sum| scale * sum as f32);
        }
    }

    /// Whether it has at least so many cells.
    pub fn has(&self, cells: usize) -> bool {
        self.values.len() >= cells
            && self.scales.len() >= cells
            && self.starts.len() >= cells
            && self.weights_of_min.len() >= cells
            && self.weights_of_half_mins.len() >= cells
    }
}

/// The scale that makes the largest number of a cell the integer `most`, and its inverse; zeros where the inverse would be
/// infinite.
#[inline(always)]
pub fn scale_and_inverse(largest: f32, most: f32) -> (f32, f32) {
    match most / largest {
        f32::INFINITY => (0.0, 0.0),
        inverse => (largest / most, inverse),
    }
}
