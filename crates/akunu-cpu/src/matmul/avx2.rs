//! Products of panels with a few vectors, for AVX2: two vectors of eight rows instead of one of sixteen.
//!
//! `vpmaddubsw` adds two products in 16 bits, which 8-bit weights would overflow. They are made signed
//! again, and their sign is moved to the activations: `|w| * sign(w) q` stays within `128 * 127 * 2`.

use std::arch::x86_64::*;

use super::activation::{Activations, HALF};
use super::dots::{BATCH, Dots};
use super::format::{CELL, Float, Quant, ROWS, Scales};

/// Rows of a vector.
const LANES: usize = 8;

/// Quantises a vector.
///
/// # Safety
/// The processor must have AVX2.
#[target_feature(enable = "avx2,fma")]
pub unsafe fn quantise(into: &mut Activations, x: &[f32], offset: i32) {
    into.quantise(x, offset);
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
                let (scale, second) = cell_scales(quant.scales, scales, supers, half);
                for (sum, x) in sums.iter_mut().zip(x) {
                    *sum = add_cell::<BITS>(*sum, &numbers, (quant.scales, scale, second), x, c);
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

/// `sum` plus the products of cell `c`.
///
/// # Safety
/// The activations have a cell `c`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn add_cell<const BITS: u32>(
    sum: __m256,
    numbers: &[__m256i; 8],
    (kind, scale, second): (Scales, __m256, __m256),
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
        match kind {
            Scales::Halves => {
                let dots = _mm256_fmadd_ps(high, second, _mm256_mul_ps(low, scale));
                _mm256_fmadd_ps(dots, factor, sum)
            }
            Scales::Plain => {
                _mm256_fmadd_ps(_mm256_add_ps(low, high), _mm256_mul_ps(scale, factor), sum)
            }
            Scales::WithMin | Scales::Grouped => {
                let dots = _mm256_add_ps(low, high);
                let sum = _mm256_fmadd_ps(dots, _mm256_mul_ps(scale, factor), sum);
                let weight = _mm256_set1_ps(*x.weights_of_min.get_unchecked(c));
                _mm256_fmadd_ps(second, weight, sum)
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
        // 8-bit weights are signed here, and need no correction.
        let start = if BITS == 8 {
            0
        } else {
            *x.starts.get_unchecked(4 * c + quarter)
        };
        let mut dots = _mm256_set1_epi32(start);
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

/// The scale of eight rows, and their minimum or second scale.
///
/// # Safety
/// The pointers are those of a cell's scales and of its super-block's.
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn cell_scales(
    kind: Scales,
    scales: *const u8,
    supers: *const u8,
    half: usize,
) -> (__m256, __m256) {
    // SAFETY: as the caller says.
    unsafe {
        let halves = |bytes: *const u8, array: usize| {
            let at = bytes.add(2 * ROWS * array + 2 * LANES * half);
            _mm256_cvtph_ps(_mm_loadu_si128(at.cast()))
        };
        let bytes = |array: usize| _mm_loadl_epi64(scales.add(ROWS * array + LANES * half).cast());
        match kind {
            Scales::Plain => (halves(scales, 0), _mm256_setzero_ps()),
            Scales::WithMin => (halves(scales, 0), halves(scales, 1)),
            Scales::Grouped => {
                let wide = |array| _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes(array)));
                let min = _mm256_sub_ps(_mm256_setzero_ps(), halves(supers, 1));
                (
                    _mm256_mul_ps(wide(0), halves(supers, 0)),
                    _mm256_mul_ps(wide(1), min),
                )
            }
            Scales::Halves => {
                let wide = |array| _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes(array)));
                let d = halves(supers, 0);
                (_mm256_mul_ps(wide(0), d), _mm256_mul_ps(wide(1), d))
            }
        }
    }
}

/// Products of floating-point cells: lane 2 n + i of a vector of four rows is column i of a pair.
///
/// # Safety
/// The processor must have AVX2, FMA and F16C. `panel` points at a panel of `cells` cells; each of `x` has as
/// many numbers.
#[target_feature(enable = "avx2,fma,f16c")]
pub unsafe fn float_dots(float: Float, panel: *const u8, cells: usize, x: &[&[f32]]) -> Dots {
    // SAFETY: as the caller says.
    unsafe {
        match float {
            Float::F16 => pair_dots::<F16>(panel, cells * CELL / 2, x),
            Float::BF16 => pair_dots::<BF16>(panel, cells * CELL / 2, x),
            Float::F32 => pair_dots::<F32>(panel, cells * CELL / 2, x),
        }
    }
}

const F16: u8 = 0;
const BF16: u8 = 1;
const F32: u8 = 2;

/// # Safety
/// As [`float_dots`].
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn pair_dots<const FLOAT: u8>(panel: *const u8, pairs: usize, x: &[&[f32]]) -> Dots {
    const QUARTERS: usize = 4;
    let bytes = if FLOAT == F32 { 4 } else { 2 };
    let mut out = [[0f32; ROWS]; BATCH];
    for (out, x) in out.iter_mut().zip(x) {
        let mut sums = [_mm256_setzero_ps(); QUARTERS];
        for p in 0..pairs {
            // SAFETY: pair p is within the panel and within x.
            unsafe {
                let pair = x.as_ptr().add(2 * p).cast::<f64>().read_unaligned();
                let pair = _mm256_castpd_ps(_mm256_set1_pd(pair));
                for (quarter, sum) in sums.iter_mut().enumerate() {
                    let at = panel.add((2 * ROWS * p + LANES * quarter) * bytes);
                    *sum = _mm256_fmadd_ps(floats::<FLOAT>(at), pair, *sum);
                }
            }
        }
        for (quarter, sum) in sums.iter().enumerate() {
            let mut lanes = [0f32; LANES];
            // SAFETY: an array of eight floats.
            unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), *sum) };
            for (n, pair) in lanes.chunks_exact(2).enumerate() {
                out[4 * quarter + n] = pair[0] + pair[1];
            }
        }
    }
    out
}

/// Eight numbers as f32.
///
/// # Safety
/// `at` points at eight numbers.
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn floats<const FLOAT: u8>(at: *const u8) -> __m256 {
    // SAFETY: as the caller says.
    unsafe {
        match FLOAT {
            F16 => _mm256_cvtph_ps(_mm_loadu_si128(at.cast())),
            BF16 => {
                let wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(at.cast()));
                _mm256_castsi256_ps(_mm256_slli_epi32::<16>(wide))
            }
            _ => _mm256_loadu_ps(at.cast()),
        }
    }
}
