//! Products of panels with a few vectors, for AVX2: two vectors of eight rows instead of one of sixteen.
//!
//! `vpmaddubsw` adds two products in 16 bits, which 8-bit weights would overflow. They are made signed
//! again, and their sign is moved to the activations: `|w| * sign(w) q` stays within `128 * 127 * 2`.

use std::arch::x86_64::*;

use super::activation::{Activations, HALF};
use super::dots::{BATCH, Dots};
use super::format::{CELL, Quant, ROWS, Scales};

/// Rows of a vector.
const LANES: usize = 8;

/// Quantises a vector. 8-bit weights are made signed here: 128 of their offset is gone.
///
/// # Safety
/// The processor must have AVX2.
#[target_feature(enable = "avx2,fma")]
pub unsafe fn quantise(into: &mut Activations, x: &[f32], quant: Quant) {
    into.quantise(x, quant.offset - gone(quant));
}

/// Products of quantised cells.
///
/// # Safety
/// The processor must have AVX2, FMA and F16C. `panel` points at a panel of `cells` cells; each of `x` has as
/// many, quantised with the format's offset.
#[target_feature(enable = "avx2,fma,f16c")]
pub unsafe fn quant_dots(quant: Quant, panel: *const u8, cells: usize, x: &[Activations]) -> Dots {
    // SAFETY: as the caller says.
    unsafe {
        match quant.bits {
            4 => by_bits::<4>(quant, panel, cells, x),
            5 => by_bits::<5>(quant, panel, cells, x),
            6 => by_bits::<6>(quant, panel, cells, x),
            _ => by_bits::<8>(quant, panel, cells, x),
        }
    }
}

/// # Safety
/// As [`quant_dots`].
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn by_bits<const BITS: u32>(
    quant: Quant,
    panel: *const u8,
    cells: usize,
    x: &[Activations],
) -> Dots {
    let mut out = [[0f32; ROWS]; BATCH];
    for half in 0..2 {
        let mut sums = [_mm256_setzero_ps(); BATCH];
        for c in 0..cells {
            // SAFETY: cell c is within the panel and within each of x.
            unsafe {
                let cell = panel.add(quant.cell_at(c));
                let numbers = widen::<BITS>(cell, half);
                let supers = panel.add(quant.super_at(c));
                let scales = cell.add(quant.cell_bytes());
                let scales = cell_scales(quant.scales, scales, supers, half);
                for (sum, x) in sums.iter_mut().zip(x) {
                    *sum = add_cell::<BITS>(*sum, &numbers, (quant.scales, scales), x, c);
                }
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            // SAFETY: eight floats of sixteen.
            unsafe { _mm256_storeu_ps(out.as_mut_ptr().add(LANES * half), sum) };
        }
    }
    out
}

/// Writes the `cells` cells of a panel as f32: sixteen numbers a column, column after column.
///
/// # Safety
/// The processor must have AVX2, FMA and F16C. The panel has as many cells, and `out` room for their numbers.
#[target_feature(enable = "avx2,fma,f16c")]
pub unsafe fn widen_panel(quant: Quant, panel: *const u8, cells: usize, out: *mut f32) {
    // SAFETY: as the caller says.
    unsafe {
        match quant.bits {
            4 => widen_cells::<4>(quant, panel, cells, out),
            5 => widen_cells::<5>(quant, panel, cells, out),
            6 => widen_cells::<6>(quant, panel, cells, out),
            _ => widen_cells::<8>(quant, panel, cells, out),
        }
    }
}

/// # Safety
/// As [`widen_panel`].
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn widen_cells<const BITS: u32>(
    quant: Quant,
    panel: *const u8,
    cells: usize,
    out: *mut f32,
) {
    let offset = _mm256_set1_ps((gone(quant) - quant.offset) as f32);
    for (c, half) in (0..cells).flat_map(|c| [(c, 0), (c, 1)]) {
        // SAFETY: cell c is within the panel, and its numbers within `out`.
        unsafe {
            let cell = panel.add(quant.cell_at(c));
            let numbers = widen::<BITS>(cell, half);
            let supers = panel.add(quant.super_at(c));
            let CellScales { scales, mins } =
                cell_scales(quant.scales, cell.add(quant.cell_bytes()), supers, half);
            for (j, numbers) in numbers.into_iter().enumerate() {
                let scale = scales[j / 4];
                let plus = _mm256_fmadd_ps(scale, offset, mins[j / 4]);
                let value = |number| _mm256_fmadd_ps(_mm256_cvtepi32_ps(number), scale, plus);
                let columns = [
                    value(_mm256_srai_epi32::<24>(_mm256_slli_epi32::<24>(numbers))),
                    value(_mm256_srai_epi32::<24>(_mm256_slli_epi32::<16>(numbers))),
                    value(_mm256_srai_epi32::<24>(_mm256_slli_epi32::<8>(numbers))),
                    value(_mm256_srai_epi32::<24>(numbers)),
                ];
                for (i, column) in columns.into_iter().enumerate() {
                    let at = (CELL * c + 4 * j + i) * ROWS + LANES * half;
                    _mm256_storeu_ps(out.add(at), column);
                }
            }
        }
    }
}

/// What is subtracted from the stored numbers when they are made signed bytes: 128 from those of 8 bits.
fn gone(quant: Quant) -> i32 {
    if quant.bits == 8 { 128 } else { 0 }
}

/// `sum` plus the products of cell `c`.
///
/// # Safety
/// The activations have a cell `c`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn add_cell<const BITS: u32>(
    sum: __m256,
    numbers: &[__m256i; 8],
    (kind, CellScales { scales, mins }): (Scales, CellScales),
    x: &Activations,
    c: usize,
) -> __m256 {
    // SAFETY: as the caller says.
    unsafe {
        let factor = _mm256_set1_ps(*x.scales.get_unchecked(c));
        let [low, high] = [0, 1].map(|half| {
            let q = half_dots::<BITS>(numbers, x, (c, half));
            let r = half_dots::<BITS>(numbers, x, (c, 2 + half));
            _mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_slli_epi32::<8>(q), r))
        });
        let dots = match kind {
            Scales::Halves | Scales::HalvesWithMin => {
                _mm256_fmadd_ps(high, scales[1], _mm256_mul_ps(low, scales[0]))
            }
            _ => _mm256_mul_ps(_mm256_add_ps(low, high), scales[0]),
        };
        let sum = _mm256_fmadd_ps(dots, factor, sum);
        match kind {
            Scales::Plain | Scales::Halves => sum,
            Scales::WithMin | Scales::Grouped => {
                let weight = _mm256_set1_ps(*x.weights_of_min.get_unchecked(c));
                _mm256_fmadd_ps(mins[0], weight, sum)
            }
            Scales::HalvesWithMin => {
                let weights = [0, 1].map(|half| {
                    _mm256_set1_ps(*x.weights_of_half_mins.get_unchecked(2 * c + half))
                });
                let sum = _mm256_fmadd_ps(mins[0], weights[0], sum);
                _mm256_fmadd_ps(mins[1], weights[1], sum)
            }
        }
    }
}

/// The integer sums of a quarter of cell `c` of the activations: q of both halves, then r of both.
///
/// # Safety
/// The activations have it.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn half_dots<const BITS: u32>(
    numbers: &[__m256i; 8],
    x: &Activations,
    (c, quarter): (usize, usize),
) -> __m256i {
    let ones = _mm256_set1_epi16(1);
    // SAFETY: as the caller says.
    unsafe {
        let mut dots = _mm256_set1_epi32(*x.starts.get_unchecked(4 * c + quarter));
        let values = x
            .values
            .as_ptr()
            .add(2 * CELL * c + HALF * quarter)
            .cast::<i32>();
        for j in 0..4 {
            let weights = numbers[4 * (quarter % 2) + j];
            let x = _mm256_set1_epi32(values.add(j).read_unaligned());
            let pairs = if BITS == 8 {
                _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(x, weights))
            } else {
                _mm256_maddubs_epi16(weights, x)
            };
            dots = _mm256_add_epi32(dots, _mm256_madd_epi16(pairs, ones));
        }
        dots
    }
}

/// The numbers of eight rows: vector j holds columns 4 j to 4 j + 3 of each. Those of 8 bits are signed.
///
/// # Safety
/// `cell` points at a whole cell.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn widen<const BITS: u32>(cell: *const u8, half: usize) -> [__m256i; 8] {
    let mut numbers = [_mm256_setzero_si256(); 8];
    let four = _mm256_set1_epi8(15);
    // SAFETY: the vectors of a cell, and its words of high bits, are where the format says.
    unsafe {
        let vector = |j: usize| _mm256_loadu_si256(cell.add(64 * j + 32 * half).cast());
        if BITS == 8 {
            let sign = _mm256_set1_epi8(i8::MIN);
            for (j, numbers) in numbers.iter_mut().enumerate() {
                *numbers = _mm256_xor_si256(vector(j), sign);
            }
            return numbers;
        }
        for j in 0..4 {
            numbers[j] = _mm256_and_si256(vector(j), four);
            numbers[4 + j] = _mm256_and_si256(_mm256_srli_epi16::<4>(vector(j)), four);
        }
        for bit in 4..BITS {
            let plane = cell.add(64 * bit as usize).cast::<i32>();
            for (j, numbers) in numbers.iter_mut().enumerate() {
                let word = plane.add(2 * j + half).read_unaligned();
                let set = _mm256_and_si256(bits_as_bytes(word), _mm256_set1_epi8(1 << bit));
                *numbers = _mm256_or_si256(*numbers, set);
            }
        }
    }
    numbers
}

/// A byte of ones for each bit that is set.
#[inline]
#[target_feature(enable = "avx2")]
fn bits_as_bytes(word: i32) -> __m256i {
    let byte_of = _mm256_setr_epi8(
        0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3,
        3, 3,
    );
    let bit_of = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
    let bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(word), byte_of);
    _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit_of), bit_of)
}

/// The scale and the minimum of eight rows in both halves of a cell.
#[derive(Clone, Copy)]
struct CellScales {
    scales: [__m256; 2],
    mins: [__m256; 2],
}

/// # Safety
/// The pointers are those of a cell's scales and of its super-block's.
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn cell_scales(
    kind: Scales,
    scales: *const u8,
    supers: *const u8,
    half: usize,
) -> CellScales {
    let none = [_mm256_setzero_ps(); 2];
    let times = |number, factor| _mm256_mul_ps(_mm256_cvtepi32_ps(number), factor);
    // SAFETY: as the caller says.
    let (scales, mins) = unsafe {
        let halves = |bytes: *const u8, array: usize| {
            let at = bytes.add(2 * ROWS * array + 2 * LANES * half);
            _mm256_cvtph_ps(_mm_loadu_si128(at.cast()))
        };
        let bytes = |array: usize| _mm_loadl_epi64(scales.add(ROWS * array + LANES * half).cast());
        let unsigned = [0, 1].map(|array| _mm256_cvtepu8_epi32(bytes(array)));
        let min = || _mm256_sub_ps(_mm256_setzero_ps(), halves(supers, 1));
        match kind {
            Scales::Plain => ([halves(scales, 0); 2], none),
            Scales::WithMin => ([halves(scales, 0); 2], [halves(scales, 1); 2]),
            Scales::Grouped => (
                [times(unsigned[0], halves(supers, 0)); 2],
                [times(unsigned[1], min()); 2],
            ),
            Scales::Halves => {
                let signed = [0, 1].map(|array| _mm256_cvtepi8_epi32(bytes(array)));
                (signed.map(|scale| times(scale, halves(supers, 0))), none)
            }
            Scales::HalvesWithMin => {
                let low = |both| _mm256_and_si256(both, _mm256_set1_epi32(15));
                (
                    unsigned.map(|both| times(low(both), halves(supers, 0))),
                    unsigned.map(|both| times(_mm256_srli_epi32::<4>(both), min())),
                )
            }
        }
    };
    CellScales { scales, mins }
}
