//! Vectors as tiles.

use std::arch::x86_64::*;
use std::ops::Range;

use super::digits::Digits;
use crate::amx::TILE;
use crate::matmul::activation::Values;
use crate::matmul::vectors::Vectors;
use crate::matmul::x86::avx512::gemv::quantise_cell;
use crate::matmul::x86::int16_cell::first_of_pair;
use crate::panels::format::{CELL, Quant};

/// Vectors of a tile.
pub const VECTORS: usize = 16;

/// A cell of sixteen vectors.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct VectorCell {
    /// A line for each vector. bf16: the columns in the [order of pairs](first_of_pair). Bytes: all `q`, then all `r`, of which
    /// the number is `256 q + r`.
    pub digits: [u8; TILE],
    /// What the minimum of the cell is multiplied with, `Σ x`.
    pub weight_of_min: [f32; VECTORS],
    /// Bytes: the scale of each vector.
    pub scale: [f32; VECTORS],
    /// Bytes: where the sums start, `-offset Σ v`.
    pub start: [i32; VECTORS],
}

/// How many cells `m` vectors have, sixteen vectors together.
pub fn cells(m: usize, cells_of_one: usize) -> usize {
    m.div_ceil(VECTORS) * cells_of_one
}

/// Bytes that x takes.
pub fn packed_bytes(m: usize, cells_of_one: usize) -> usize {
    cells(m, cells_of_one) * size_of::<VectorCell>()
}

/// Lays out cells `range` of x: all cells of the first sixteen vectors, then those of the next.
///
/// # Safety
/// - `level`: AVX-512 F, BW, DQ, VL and BF16.
/// - `reach`: `packed` has room for [`packed_bytes`], aligned to 64.
/// - `own`: nobody else touches these cells.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
pub unsafe fn pack_x(
    (digits, quant): (Digits, Quant),
    x: &Vectors,
    range: Range<usize>,
    packed: *mut u8,
) {
    let cells = x.len() / CELL;
    for at in range {
        let (row, cell) = (at / cells, at % cells);
        // SAFETY: `reach`: a cell of those that there is room for; any bits are one.
        let out = unsafe { &mut *packed.cast::<VectorCell>().add(at) };
        for within in 0..VECTORS {
            let vector = row * VECTORS + within;
            let numbers = (vector < x.count()).then(|| &x.get(vector)[cell * CELL..]);
            let numbers = numbers.and_then(<[f32]>::first_chunk);
            let numbers = numbers.unwrap_or(&[0.0; CELL]);
            match digits {
                Digits::Floats => out.put_floats(within, numbers),
                Digits::Bytes => out.put_bytes(within, numbers, quant.offset),
            }
        }
    }
}

impl VectorCell {
    /// Rounds a cell of a vector to bf16. The sum is that of the rounded numbers, so that a weight `scale * u + min` is multiplied
    /// with the same number in both of its parts.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    fn put_floats(&mut self, vector: usize, x: &[f32; CELL]) {
        // SAFETY: `reach`: sixteen of 32 floats each.
        let [a, b] = [0, 16].map(|at| unsafe { _mm512_loadu_ps(x.as_ptr().add(at)) });
        // SAFETY: both are 64 bytes of plain numbers.
        let columns: __m512i = unsafe { std::mem::transmute(_mm512_cvtne2ps_pbh(b, a)) };
        let even = _mm512_castsi512_ps(_mm512_slli_epi32::<16>(columns));
        let odd = _mm512_set1_epi32(0xffff_0000_u32.cast_signed());
        let odd = _mm512_castsi512_ps(_mm512_and_si512(columns, odd));
        self.weight_of_min[vector] = _mm512_reduce_add_ps(_mm512_add_ps(even, odd));
        let to = self.digits[64 * vector..][..64].as_mut_ptr();
        // SAFETY: `reach`: 64 bytes each.
        unsafe {
            let order = _mm512_loadu_si512(ORDER.as_ptr().cast());
            let pairs = _mm512_permutexvar_epi16(order, columns);
            _mm512_storeu_si512(to.cast(), pairs);
        }
    }

    /// Quantises a cell of a vector.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn put_bytes(&mut self, vector: usize, x: &[f32; CELL], offset: i32) {
        let mut values = Values([0; 2 * CELL]);
        let (scale, sums) = quantise_cell(x, &mut values);
        // NaN has a scale of NaN, and sums that may wrap around.
        let sum = sums[0].wrapping_add(sums[1]);
        self.scale[vector] = scale;
        self.weight_of_min[vector] = scale * sum as f32;
        self.start[vector] = sum.wrapping_mul(-offset);
        let bytes = values.0.map(i8::cast_unsigned);
        self.digits[64 * vector..][..64].copy_from_slice(&bytes);
    }
}

/// The columns in the order of pairs.
static ORDER: [u16; CELL] = {
    let mut order = [0; CELL];
    let mut pair = 0;
    while pair < CELL / 2 {
        order[2 * pair] = first_of_pair(pair) as u16;
        order[2 * pair + 1] = first_of_pair(pair) as u16 + 2;
        pair += 1;
    }
    order
};
