//! Products of panels with a few vectors, for AVX-512 with VNNI: what decoding runs.
//!
//! Sixteen outputs are the sixteen lanes of a vector. A cell's numbers are widened to bytes once and
//! multiplied with the activations of up to four vectors by `vpdpbusd`, four columns at a time.

use std::arch::x86_64::*;

use super::activation::{Activations, ScaleAndSums, scale_and_inverse};
use super::cells512::{AHEAD, Cell, Cells, GROUPED, HALVES, PLAIN, WITH_MIN};
use super::dots::{BATCH, Dots};
use super::format::{CELL, Float, Quant, ROWS, Scales};

/// The sixteen dot products of a panel with each of `M` vectors.
type Sums<const M: usize> = [__m512; M];

/// Quantises a vector.
///
/// # Safety
/// The processor must have AVX-512 F, BW, DQ and VL.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub unsafe fn quantise(into: &mut Activations, x: &[f32], offset: i32) {
    into.quantise_with(x, offset, |cell, values| {
        // SAFETY: 32 floats are read and 64 bytes written.
        unsafe { quantise_cell(cell.as_ptr(), values.as_mut_ptr()) }
    });
}

/// # Safety
/// As [`quantise`]; `x` points at a cell of floats, `values` at two of bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn quantise_cell(x: *const f32, values: *mut i8) -> ScaleAndSums {
    // SAFETY: as the caller says.
    let x = unsafe { [_mm512_loadu_ps(x), _mm512_loadu_ps(x.add(16))] };
    let largest = _mm512_max_ps(_mm512_abs_ps(x[0]), _mm512_abs_ps(x[1]));
    let (scale, inverse) = scale_and_inverse(_mm512_reduce_max_ps(largest));
    let mut sums = [0; 4];
    for (half, x) in x.into_iter().enumerate() {
        let v = _mm512_cvtps_epi32(_mm512_mul_ps(x, _mm512_set1_ps(inverse)));
        let q = _mm512_srai_epi32::<8>(_mm512_add_epi32(v, _mm512_set1_epi32(128)));
        let r = _mm512_sub_epi32(v, _mm512_slli_epi32::<8>(q));
        let r = _mm512_max_epi32(r, _mm512_set1_epi32(-127));
        for (place, number) in [q, r].into_iter().enumerate() {
            sums[2 * place + half] = _mm512_reduce_add_epi32(number);
            let bytes = _mm512_cvtepi32_epi8(number);
            // SAFETY: as the caller says.
            unsafe { _mm_storeu_si128(values.add(CELL * place + 16 * half).cast(), bytes) };
        }
    }
    (scale, sums)
}

/// Products of quantised cells.
///
/// # Safety
/// The processor must have AVX-512 F, BW, VL and VNNI. `panel` points at a panel of `cells` cells; each of `x`
/// has as many, quantised with the format's offset.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub unsafe fn quant_dots(quant: Quant, panel: *const u8, cells: usize, x: &[Activations]) -> Dots {
    // SAFETY: as the caller says.
    unsafe {
        match x {
            [a] => stored(by_format(quant, panel, cells, [a])),
            [a, b] => stored(by_format(quant, panel, cells, [a, b])),
            [a, b, c] => stored(by_format(quant, panel, cells, [a, b, c])),
            [a, b, c, d, ..] => stored(by_format(quant, panel, cells, [a, b, c, d])),
            [] => [[0.0; ROWS]; BATCH],
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn stored<const M: usize>(sums: Sums<M>) -> Dots {
    let mut out = [[0f32; ROWS]; BATCH];
    for (out, sums) in out.iter_mut().zip(sums) {
        // SAFETY: an array of sixteen floats.
        unsafe { _mm512_storeu_ps(out.as_mut_ptr(), sums) };
    }
    out
}

/// # Safety
/// As [`quant_dots`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn by_format<const M: usize>(
    quant: Quant,
    panel: *const u8,
    cells: usize,
    x: [&Activations; M],
) -> Sums<M> {
    // SAFETY: as the caller says.
    unsafe {
        match (quant.bits, quant.scales) {
            (4, Scales::Plain) => dots::<4, PLAIN, M>(panel, cells, x),
            (4, Scales::WithMin) => dots::<4, WITH_MIN, M>(panel, cells, x),
            (4, Scales::Grouped) => dots::<4, GROUPED, M>(panel, cells, x),
            (4, Scales::Halves) => dots::<4, HALVES, M>(panel, cells, x),
            (5, Scales::Plain) => dots::<5, PLAIN, M>(panel, cells, x),
            (5, Scales::WithMin) => dots::<5, WITH_MIN, M>(panel, cells, x),
            (5, Scales::Grouped) => dots::<5, GROUPED, M>(panel, cells, x),
            (6, Scales::WithMin) => dots::<6, WITH_MIN, M>(panel, cells, x),
            (6, Scales::Halves) => dots::<6, HALVES, M>(panel, cells, x),
            _ => dots::<8, PLAIN, M>(panel, cells, x),
        }
    }
}

/// # Safety
/// As [`quant_dots`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn dots<const BITS: u32, const SCALES: u8, const M: usize>(
    panel: *const u8,
    cells: usize,
    x: [&Activations; M],
) -> Sums<M> {
    let mut sums = [_mm512_setzero_ps(); M];
    let mut walk = Cells::<BITS, SCALES>::from(panel, 0);
    for c in 0..cells {
        // SAFETY: cell c of `cells` lies within the panel and within the activations.
        unsafe {
            let Cell {
                numbers,
                scale,
                second,
            } = walk.next();
            for m in 0..M {
                let [low, high] = integer_dots(&numbers, x[m], c);
                let factor = _mm512_set1_ps(x[m].scales.as_ptr().add(c).read());
                if SCALES == HALVES {
                    let dots = _mm512_mul_ps(_mm512_cvtepi32_ps(low), scale);
                    let dots = _mm512_fmadd_ps(_mm512_cvtepi32_ps(high), second, dots);
                    sums[m] = _mm512_fmadd_ps(dots, factor, sums[m]);
                    continue;
                }
                let dots = _mm512_cvtepi32_ps(_mm512_add_epi32(low, high));
                sums[m] = _mm512_fmadd_ps(dots, _mm512_mul_ps(scale, factor), sums[m]);
                if SCALES == WITH_MIN || SCALES == GROUPED {
                    let weight = _mm512_set1_ps(x[m].weights_of_min.as_ptr().add(c).read());
                    sums[m] = _mm512_fmadd_ps(second, weight, sums[m]);
                }
            }
        }
    }
    sums
}

/// `256 Σ u q + Σ u r` of each row over both halves of cell `c`.
///
/// # Safety
/// The activations have a cell `c`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn integer_dots(numbers: &[__m512i; 8], x: &Activations, c: usize) -> [__m512i; 2] {
    // SAFETY: as the caller says.
    unsafe {
        let values = x.values.as_ptr().add(2 * CELL * c).cast::<i32>();
        let starts = x.starts.as_ptr().add(4 * c);
        let mut sums = [0, 1, 2, 3].map(|at| _mm512_set1_epi32(starts.add(at).read()));
        for (place, sum) in sums.iter_mut().enumerate() {
            for j in 0..4 {
                let four = _mm512_set1_epi32(values.add(4 * place + j).read_unaligned());
                *sum = _mm512_dpbusd_epi32(*sum, numbers[4 * (place % 2) + j], four);
            }
        }
        [0, 1].map(|half| _mm512_add_epi32(_mm512_slli_epi32::<8>(sums[half]), sums[2 + half]))
    }
}

/// Products of a panel of floating-point cells with `M` vectors.
///
/// Lane 2 n + i of a vector is column i of a pair for row n: the even and the odd lanes of each sum are
/// added at the end.
///
/// # Safety
/// The processor must have AVX-512 F, BW and VL. `panel` points at a panel of `cells` cells; each of `x` has as
/// many numbers.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub unsafe fn float_dots(float: Float, panel: *const u8, cells: usize, x: &[&[f32]]) -> Dots {
    // SAFETY: as the caller says.
    unsafe {
        match *x {
            [a] => stored(by_float(float, panel, cells, [a])),
            [a, b] => stored(by_float(float, panel, cells, [a, b])),
            [a, b, c] => stored(by_float(float, panel, cells, [a, b, c])),
            [a, b, c, d, ..] => stored(by_float(float, panel, cells, [a, b, c, d])),
            [] => [[0.0; ROWS]; BATCH],
        }
    }
}

/// # Safety
/// As [`float_dots`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn by_float<const M: usize>(
    float: Float,
    panel: *const u8,
    cells: usize,
    x: [&[f32]; M],
) -> Sums<M> {
    let pairs = cells * CELL / 2;
    // SAFETY: as the caller says.
    unsafe {
        match float {
            Float::F16 => pair_dots::<F16, M>(panel, pairs, x),
            Float::BF16 => pair_dots::<BF16, M>(panel, pairs, x),
            Float::F32 => pair_dots::<F32, M>(panel, pairs, x),
        }
    }
}

const F16: u8 = 0;
const BF16: u8 = 1;
const F32: u8 = 2;

/// # Safety
/// As [`float_dots`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn pair_dots<const FLOAT: u8, const M: usize>(
    panel: *const u8,
    pairs: usize,
    x: [&[f32]; M],
) -> Sums<M> {
    const CHAINS: usize = 4;
    let mut sums = [[[_mm512_setzero_ps(); 2]; CHAINS]; M];
    let stride = if FLOAT == F32 { 128 } else { 64 };
    let mut one = |p: usize, chain: usize| {
        // SAFETY: pair p is within the panel and within each x.
        unsafe {
            let at = panel.add(p * stride);
            _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(AHEAD).cast());
            let weights = [floats::<FLOAT>(at), floats::<FLOAT>(at.add(stride / 2))];
            for m in 0..M {
                let pair = x[m].as_ptr().add(2 * p).cast::<f64>().read_unaligned();
                let pair = _mm512_castpd_ps(_mm512_set1_pd(pair));
                for half in 0..2 {
                    sums[m][chain][half] =
                        _mm512_fmadd_ps(weights[half], pair, sums[m][chain][half]);
                }
            }
        }
    };
    // A panel has whole cells: sixteen pairs each.
    for p in (0..pairs).step_by(CHAINS) {
        for chain in 0..CHAINS {
            one(p + chain, chain);
        }
    }
    let mut out = [_mm512_setzero_ps(); M];
    for (out, [a, b, c, d]) in out.iter_mut().zip(sums) {
        let half = |i: usize| _mm512_add_ps(_mm512_add_ps(a[i], b[i]), _mm512_add_ps(c[i], d[i]));
        *out = add_pairs(half(0), half(1));
    }
    out
}

/// `low[2 n] + low[2 n + 1]` in the first eight lanes, those of `high` in the others.
#[inline]
#[target_feature(enable = "avx512f")]
fn add_pairs(low: __m512, high: __m512) -> __m512 {
    let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    let odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    _mm512_add_ps(
        _mm512_permutex2var_ps(low, even, high),
        _mm512_permutex2var_ps(low, odd, high),
    )
}

/// Sixteen numbers as f32.
///
/// # Safety
/// `at` points at sixteen numbers.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn floats<const FLOAT: u8>(at: *const u8) -> __m512 {
    // SAFETY: as the caller says.
    unsafe {
        match FLOAT {
            F16 => _mm512_cvtph_ps(_mm256_loadu_si256(at.cast())),
            BF16 => {
                let wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(at.cast()));
                _mm512_castsi512_ps(_mm512_slli_epi32::<16>(wide))
            }
            _ => _mm512_loadu_ps(at.cast()),
        }
    }
}
