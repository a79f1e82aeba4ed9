//! Products of bytes with AVX-512 VNNI, whose instructions multiply whole numbers: floats become three digits of 8 bits, and
//! each digit is multiplied by itself.
//!
//! ```text
//! q      = scale * (65536 a + 256 b + c)      digits from -128 to 127, a scale for each 32 elements
//! weight = scale * (65536 a + 256 b + c)      digits from 0 to 255, a scale for each 32 elements of a block of keys
//! ```
//!
//! That is 24 bits, as many as a float has, and sums of whole numbers are exact. An instruction multiplies four unsigned
//! bytes by four signed ones: for scores keys are the unsigned ones, with 128 added, and sums begin at `-128 Σ digits`; for sums of
//! values the weights are.
//!
//! Keys are turned, so that a vector has four elements of 16 keys; values are interleaved, so that one has an element of
//! four values 16 times.

use std::arch::x86_64::*;

use super::ahead::Ahead;
use super::{Products, Rows, SHARED};
use crate::kernel::attention::blocks::BLOCK;

/// Digits of a number.
const DIGITS: usize = 3;
/// Bytes that are multiplied at once in each lane.
const QUAD: usize = 4;
/// Keys of a vector.
const LANES: usize = 16;
/// Vectors of the keys of a block.
const GROUPS: usize = BLOCK / LANES;
/// Elements of a head that are interleaved at once.
const CHUNK: usize = 64;
/// The largest number made of digits of a query: its first digit is at most 127.
const LARGEST_SIGNED: f32 = (127 << 16) as f32;
/// The largest number made of digits of a weight.
const LARGEST_UNSIGNED: f32 = (255 << 16) as f32;

/// Cycles, about, of what is done for [`CHUNK`] elements of 16 keys, or four values, ...
const TURN: usize = 48;
const INTERLEAVE: usize = 13;
/// ... for four elements of a head and all keys, for four values and [`CHUNK`] elements of a head ...
const SCORE: usize = 7;
const ADD: usize = 8;
/// ... and for the weights of a head and [`SHARED`] elements.
const WEIGH: usize = 13;

/// Products by digits, of heads of `D` elements: a multiple of [`CHUNK`].
pub(crate) struct Digits<const D: usize>;

/// 32 elements of a query.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct QueryBlock {
    digits: [[i8; SHARED]; DIGITS],
    /// `-128 Σ digits`.
    starts: [i32; DIGITS],
    scale: f32,
}

/// Four elements of each key of a block.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct KeyQuads([[u8; QUAD]; BLOCK]);

/// [`CHUNK`] elements of four values, those of keys i, 16 + i, 32 + i and 48 + i, in the order that [`in_order`] undoes.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct ValueQuads([[u8; QUAD]; CHUNK]);

/// The weights of a block of keys for 32 elements of a head: vectors of digits of four keys, as in [`ValueQuads`].
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct WeightBlock([[[u8; QUAD]; LANES]; DIGITS]);

/// The scales of values that share one among 32 elements, so that weights times them have digits.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct ValueScales {
    /// The scale of each key over the largest, times [`LARGEST_UNSIGNED`].
    of_keys: [f32; BLOCK],
    /// The largest over [`LARGEST_UNSIGNED`].
    of_sums: f32,
}

/// A block as products want it.
#[derive(Default)]
pub(crate) struct Memory {
    /// (group, n_scales).
    query: Vec<QueryBlock>,
    /// (head_dim / 4).
    keys: Vec<KeyQuads>,
    /// (head_dim / [`CHUNK`], [`LANES`]).
    values: Vec<ValueQuads>,
    /// (n_scales).
    scales: Vec<ValueScales>,
    /// (group, n_scales).
    weights: Vec<WeightBlock>,
}

impl Memory {
    /// For as many heads of `head_dim` elements.
    fn fit(&mut self, group: usize, head_dim: usize) {
        let n_scales = head_dim / SHARED;
        let query = QueryBlock {
            digits: [[0; SHARED]; DIGITS],
            starts: [0; DIGITS],
            scale: 0.0,
        };
        self.query.resize(group * n_scales, query);
        let quads = KeyQuads([[0; QUAD]; BLOCK]);
        self.keys.resize(head_dim / QUAD, quads);
        let quads = ValueQuads([[0; QUAD]; CHUNK]);
        self.values.resize(head_dim / CHUNK * LANES, quads);
        let scales = ValueScales {
            of_keys: [0.0; BLOCK],
            of_sums: 0.0,
        };
        self.scales.resize(n_scales, scales);
        let weights = WeightBlock([[[0; QUAD]; LANES]; DIGITS]);
        self.weights.resize(group * n_scales, weights);
    }
}

impl<const D: usize> Products for Digits<D> {
    const HEAD_DIM: usize = D;

    type Memory = Memory;

    fn cycles(group: usize) -> usize {
        let of_a_chunk = GROUPS * TURN + LANES * INTERLEAVE;
        let of_a_head = D / QUAD * (SCORE + ADD) + D / SHARED * WEIGH;
        D / CHUNK * of_a_chunk + group * of_a_head
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    unsafe fn prepare(q: &[f32], memory: &mut Memory) {
        memory.fit(q.len() / D, D);
        let blocks = q.as_chunks::<SHARED>().0.iter();
        for (to, block) in memory.query.iter_mut().zip(blocks) {
            *to = QueryBlock::of(block);
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    unsafe fn scores(k: &Rows, memory: &mut Memory, ahead: &mut Ahead, scores: &mut [f32]) {
        turn::<D>(k, ahead, &mut memory.keys);
        let heads = memory.query.chunks_exact(const { D / SHARED });
        for (query, scores) in heads.zip(scores.as_chunks_mut().0) {
            scores_of(query, &memory.keys, k.scales, ahead, scores);
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    unsafe fn sum(
        v: &Rows,
        weights: &[f32],
        memory: &mut Memory,
        ahead: &mut Ahead,
        sums: &mut [f32],
    ) {
        let n_scales = const { D / SHARED };
        interleave::<D>(v, ahead, &mut memory.values);
        for (to, scales) in memory.scales.iter_mut().zip(v.scales.as_chunks().0) {
            *to = ValueScales::of(scales);
        }
        let heads = memory.weights.chunks_exact_mut(n_scales);
        for (digits, weights) in heads.zip(weights.as_chunks().0) {
            for (digits, scales) in digits.iter_mut().zip(&memory.scales) {
                ahead.spend(WEIGH);
                digits.set(weights, &scales.of_keys);
            }
        }
        let heads = memory.weights.chunks_exact(n_scales);
        for (weights, sums) in heads.zip(sums.chunks_exact_mut(D)) {
            let chunks = memory.values.as_chunks::<LANES>().0.iter();
            let weights = weights.as_chunks().0.iter();
            let scales = memory.scales.as_chunks().0.iter();
            let sums = sums.as_chunks_mut().0.iter_mut();
            for (((values, weights), scales), sums) in chunks.zip(weights).zip(scales).zip(sums) {
                add_values(&values[..v.n.min(LANES)], weights, scales, ahead, sums);
            }
        }
    }
}

/// The largest absolute value of some numbers; NaN if one of them is: as whole numbers, its bits are beyond those of all others.
#[inline(always)]
fn peak(numbers: &[f32]) -> f32 {
    let larger = |peak: u32, x: &f32| peak.max(x.abs().to_bits());
    f32::from_bits(numbers.iter().fold(0, larger))
}

/// What makes `largest` of the peak of some numbers. If the peak is 0, or so small that there is no such factor, the numbers
/// have no digits but 0.
#[inline(always)]
fn factor(largest: f32, peak: f32) -> f32 {
    let factor = largest / peak;
    if factor.is_finite() { factor } else { 0.0 }
}

/// The vectors of a block.
#[inline]
#[target_feature(enable = "avx512f")]
fn groups(numbers: &[f32; BLOCK]) -> [__m512; GROUPS] {
    // SAFETY: a group lies within the block.
    std::array::from_fn(|i| unsafe { _mm512_loadu_ps(numbers.as_ptr().add(i * LANES)) })
}

impl QueryBlock {
    /// The digits of some numbers. The scale of numbers of which one is NaN is NaN.
    #[inline(always)]
    fn of(numbers: &[f32; SHARED]) -> QueryBlock {
        let peak = peak(numbers);
        let factor = factor(LARGEST_SIGNED, peak);
        let mut rests = [0; SHARED];
        for (rest, x) in rests.iter_mut().zip(numbers) {
            let whole = (x * factor).round_ties_even();
            let whole = if whole.abs() <= LARGEST_SIGNED {
                whole
            } else {
                0.0
            };
            // SAFETY: it is a number, and within the range. A conversion that looks at this itself would not be done in vectors.
            *rest = unsafe { whole.to_int_unchecked() };
        }
        let (mut digits, mut starts) = ([[0; SHARED]; DIGITS], [0; DIGITS]);
        for (digits, start) in digits.iter_mut().zip(&mut starts).rev() {
            let mut sum = 0;
            for (digit, rest) in digits.iter_mut().zip(&mut rests) {
                // A low byte of more than 127 is a digit of less than 0.
                let next = (*rest + 128) >> 8;
                *digit = *rest as i8;
                sum += *rest - (next << 8);
                *rest = next;
            }
            *start = -128 * sum;
        }
        QueryBlock {
            digits,
            starts,
            scale: peak / LARGEST_SIGNED,
        }
    }
}

impl ValueScales {
    #[inline(always)]
    fn of(scales: &[f32; BLOCK]) -> ValueScales {
        let peak = peak(scales);
        let factor = factor(LARGEST_UNSIGNED, peak);
        let mut of_keys = *scales;
        for scale in &mut of_keys {
            *scale *= factor;
        }
        ValueScales {
            of_keys,
            of_sums: peak / LARGEST_UNSIGNED,
        }
    }
}

impl WeightBlock {
    /// The digits of weights, which are at most 1, times scales.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn set(&mut self, weights: &[f32; BLOCK], scales: &[f32; BLOCK]) {
        let (weights, scales) = (groups(weights), groups(scales));
        let whole = |i: usize| _mm512_cvtps_epi32(_mm512_mul_ps(weights[i], scales[i]));
        // Of each number the bytes c, b, a, 0: of two numbers c c a a and b b 0 0, and of four each digit.
        let even = _mm512_set1_epi32(0x00ff_00ff);
        let pairs = |low: __m512i, high: __m512i| {
            [
                choose(even, low, _mm512_slli_epi32::<8>(high)),
                choose(even, _mm512_srli_epi32::<8>(low), high),
            ]
        };
        let ([ca, b], [ca_high, b_high]) = (pairs(whole(0), whole(1)), pairs(whole(2), whole(3)));
        let low = _mm512_set1_epi32(0x0000_ffff);
        let digits = [
            choose(low, _mm512_srli_epi32::<16>(ca), ca_high),
            choose(low, b, _mm512_slli_epi32::<16>(b_high)),
            choose(low, ca, _mm512_slli_epi32::<16>(ca_high)),
        ];
        for (to, digits) in self.0.iter_mut().zip(digits) {
            // SAFETY: there is room for a vector.
            unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), digits) };
        }
    }
}

/// The bits of `yes` where the mask has ones, those of `no` elsewhere.
#[inline]
#[target_feature(enable = "avx512f")]
fn choose(mask: __m512i, yes: __m512i, no: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0b1100_1010>(mask, yes, no)
}

/// `65536 a + 256 b + c`.
#[inline]
#[target_feature(enable = "avx512f")]
fn number([a, b, c]: [__m512i; DIGITS]) -> __m512 {
    let high = _mm512_add_epi32(_mm512_slli_epi32::<8>(a), b);
    let (high, low) = (_mm512_cvtepi32_ps(high), _mm512_cvtepi32_ps(c));
    _mm512_fmadd_ps(high, _mm512_set1_ps(256.0), low)
}

/// Turns the keys of a block, 16 at a time, and adds 128 to each byte.
#[inline]
#[target_feature(enable = "avx512f")]
fn turn<const D: usize>(k: &Rows, ahead: &mut Ahead, to: &mut [KeyQuads]) {
    assert!(k.bytes.len() >= BLOCK * D && to.len() * QUAD >= D);
    let offset = _mm512_set1_epi8(-128);
    for first in (0..k.n).step_by(LANES) {
        for chunk in (0..D).step_by(CHUNK) {
            // SAFETY: all of this lies in the 64 rows.
            let rows = unsafe { k.bytes.as_ptr().add(first * D + chunk) };
            for part in 0..CHUNK / 16 {
                ahead.spend(TURN / 4);
                // Quarter l of vector r: 16 bytes of key 4 l + r. Those of 4 x 4 numbers are turned in each quarter.
                let four = |r: usize| {
                    // SAFETY: as above.
                    let quarter = |l: usize| unsafe {
                        _mm_loadu_si128(rows.add((4 * l + r) * D + 16 * part).cast())
                    };
                    let four = _mm512_castsi128_si512(quarter(0));
                    let four = _mm512_inserti32x4::<1>(four, quarter(1));
                    let four = _mm512_inserti32x4::<2>(four, quarter(2));
                    _mm512_inserti32x4::<3>(four, quarter(3))
                };
                let [a, b, c, d] = [four(0), four(1), four(2), four(3)];
                let (ab, cd) = (_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d));
                let (ab_high, cd_high) = (_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d));
                let columns = [
                    _mm512_unpacklo_epi64(ab, cd),
                    _mm512_unpackhi_epi64(ab, cd),
                    _mm512_unpacklo_epi64(ab_high, cd_high),
                    _mm512_unpackhi_epi64(ab_high, cd_high),
                ];
                for (i, column) in columns.into_iter().enumerate() {
                    let column = _mm512_xor_si512(column, offset);
                    // SAFETY: there is room for all elements of a key, and the 16 keys are in the block.
                    unsafe {
                        let quads = to.as_mut_ptr().add(chunk / QUAD + 4 * part + i);
                        _mm512_storeu_si512(quads.cast::<i32>().add(first).cast(), column);
                    }
                }
            }
        }
    }
}

/// The scores of one head.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
fn scores_of(
    query: &[QueryBlock],
    keys: &[KeyQuads],
    scales: &[f32],
    ahead: &mut Ahead,
    to: &mut [f32; BLOCK],
) {
    let keys = keys.as_chunks::<{ SHARED / QUAD }>().0.iter();
    let scales = scales.as_chunks::<BLOCK>().0.iter();
    let mut scores = [_mm512_setzero_ps(); GROUPS];
    for ((query, keys), scales) in query.iter().zip(keys).zip(scales) {
        let starts = query.starts.map(|start| _mm512_set1_epi32(start));
        let mut sums = [starts; GROUPS];
        for (at, keys) in keys.iter().enumerate() {
            ahead.spend(SCORE);
            let digits: [__m512i; DIGITS] = std::array::from_fn(|i| {
                let quad = query.digits[i].as_chunks::<QUAD>().0[at];
                _mm512_set1_epi32(i32::from_ne_bytes(quad.map(i8::cast_unsigned)))
            });
            for (group, sums) in sums.iter_mut().enumerate() {
                // SAFETY: the 16 keys are in the block.
                let keys = unsafe { _mm512_loadu_si512(keys.0.as_ptr().add(group * LANES).cast()) };
                for (sum, digit) in sums.iter_mut().zip(digits) {
                    *sum = _mm512_dpbusd_epi32(*sum, keys, digit);
                }
            }
        }
        let scale = _mm512_set1_ps(query.scale);
        for ((score, sums), scales) in scores.iter_mut().zip(sums).zip(groups(scales)) {
            *score = _mm512_fmadd_ps(number(sums), _mm512_mul_ps(scales, scale), *score);
        }
    }
    for (group, score) in scores.into_iter().enumerate() {
        // SAFETY: the 16 keys are in the block.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr().add(group * LANES), score) };
    }
}

/// Interleaves the values of a block, four at a time.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn interleave<const D: usize>(v: &Rows, ahead: &mut Ahead, to: &mut [ValueQuads]) {
    assert!(v.bytes.len() >= BLOCK * D && to.len() * CHUNK >= LANES * D);
    // Quarter l has elements 8 l to 8 l + 7, and 32 + 8 l to 32 + 8 l + 7, which have another scale.
    let by_scale = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    for quad in 0..v.n.min(LANES) {
        for chunk in (0..D).step_by(CHUNK) {
            ahead.spend(INTERLEAVE);
            // SAFETY: all of this lies in the 64 rows, and four vectors are as many bytes as there is room for.
            unsafe {
                let [a, b, c, d] = [0, 1, 2, 3].map(|i| {
                    let at = (i * LANES + quad) * D + chunk;
                    let row = _mm512_loadu_si512(v.bytes.as_ptr().add(at).cast());
                    _mm512_permutexvar_epi64(by_scale, row)
                });
                let (ab, cd) = (_mm512_unpacklo_epi8(a, b), _mm512_unpacklo_epi8(c, d));
                let (ab_high, cd_high) = (_mm512_unpackhi_epi8(a, b), _mm512_unpackhi_epi8(c, d));
                let quads = [
                    _mm512_unpacklo_epi16(ab, cd),
                    _mm512_unpackhi_epi16(ab, cd),
                    _mm512_unpacklo_epi16(ab_high, cd_high),
                    _mm512_unpackhi_epi16(ab_high, cd_high),
                ];
                let to = to.as_mut_ptr().add(chunk / CHUNK * LANES + quad);
                for (i, quads) in quads.into_iter().enumerate() {
                    _mm512_storeu_si512(to.cast::<__m512i>().add(i).cast(), quads);
                }
            }
        }
    }
}

/// The 32 elements of two vectors of [`ValueQuads`], in their order: quarter l of the first has elements 8 l to 8 l + 3.
#[inline]
#[target_feature(enable = "avx512f")]
fn in_order([a, b]: [__m512; 2]) -> [__m512; 2] {
    let first = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    let second = _mm512_add_epi32(first, _mm512_set1_epi32(8));
    [first, second].map(|order| _mm512_permutex2var_ps(a, order, b))
}

/// Adds the weighted values of a block to [`CHUNK`] elements of a head.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
fn add_values(
    values: &[ValueQuads],
    weights: &[WeightBlock; 2],
    scales: &[ValueScales; 2],
    ahead: &mut Ahead,
    to: &mut [f32; CHUNK],
) {
    let zero = _mm512_setzero_si512();
    // (scale, vector, digit).
    let mut sums = [[[zero; DIGITS]; 2]; 2];
    for (quad, values) in values.iter().enumerate() {
        ahead.spend(ADD);
        for (half, (weights, sums)) in weights.iter().zip(&mut sums).enumerate() {
            let digits = (weights.0.each_ref())
                .map(|digits| _mm512_set1_epi32(i32::from_ne_bytes(digits[quad])));
            for (i, sums) in sums.iter_mut().enumerate() {
                // SAFETY: four vectors are as many bytes as there are.
                let values = unsafe {
                    _mm512_loadu_si512(values.0.as_ptr().add((2 * half + i) * LANES).cast())
                };
                for (sum, digit) in sums.iter_mut().zip(digits) {
                    *sum = _mm512_dpbusd_epi32(*sum, digit, values);
                }
            }
        }
    }
    let halves = to.as_chunks_mut::<SHARED>().0.iter_mut();
    for ((sums, scales), to) in sums.into_iter().zip(scales).zip(halves) {
        let scale = _mm512_set1_ps(scales.of_sums);
        let elements = in_order(sums.map(|digits| number(digits)));
        for (elements, to) in elements.into_iter().zip(to.as_chunks_mut::<LANES>().0) {
            // SAFETY: there is room for 16.
            unsafe {
                let before = _mm512_loadu_ps(to.as_ptr());
                _mm512_storeu_ps(to.as_mut_ptr(), _mm512_fmadd_ps(elements, scale, before));
            }
        }
    }
}

// What the instructions make of the digits is tested with whole attentions, on all levels: `tests/it/numbers.rs`.
#[cfg(test)]
mod tests {
    use akunu_kernels::case::Rng;

    use super::*;

    /// The largest number has 23 bits. Rounding to a whole one is half of the last, that of the scale, of the factor and of their
    /// product up to half each. With two digits the error would be up to 2^-16.
    #[test]
    fn the_digits_of_a_query_are_as_good_as_a_float() {
        let mut rng = Rng::new(3);
        for size in [1e-30, 1.0, 1e30] {
            let numbers: [f32; SHARED] = rng.floats(SHARED, size).try_into().unwrap();
            let largest_error = f64::from(peak(&numbers)) / f64::from(1 << 22);
            let block = QueryBlock::of(&numbers);
            let [a, b, c] = block.digits.map(|digits| digits.map(i32::from));
            for (i, x) in numbers.into_iter().enumerate() {
                let whole = 65536 * a[i] + 256 * b[i] + c[i];
                let error = f64::from(block.scale) * f64::from(whole) - f64::from(x);
                assert!(error.abs() < largest_error, "{x}: {error:e}");
            }
            let starts = [a, b, c].map(|digits| -128 * digits.iter().sum::<i32>());
            assert_eq!(block.starts, starts);
        }
    }

    /// Zeros and what is too small have no digits, and no scale that is not a number.
    #[test]
    fn next_to_nothing_has_no_digits() {
        for x in [0.0, 1e-40] {
            let block = QueryBlock::of(&[x; SHARED]);
            assert_eq!(block.digits, [[0; SHARED]; DIGITS]);
            assert!(block.scale.is_finite());
        }
        let scales = ValueScales::of(&[0.0; BLOCK]);
        assert_eq!((scales.of_keys, scales.of_sums), ([0.0; BLOCK], 0.0));
    }

    /// Wherever it is. A digit cannot say so, a scale can.
    #[test]
    fn the_scale_of_what_is_not_a_number_is_none() {
        for at in 0..SHARED {
            for nan in [f32::NAN, -f32::NAN] {
                let mut numbers = [3.0; SHARED];
                numbers[at] = nan;
                assert!(QueryBlock::of(&numbers).scale.is_nan());
            }
        }
        for at in 0..BLOCK {
            let mut scales = [3.0; BLOCK];
            scales[at] = f32::NAN;
            assert!(ValueScales::of(&scales).of_sums.is_nan());
        }
    }
}
