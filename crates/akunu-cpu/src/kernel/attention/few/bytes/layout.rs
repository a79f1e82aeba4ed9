//! Blocks of keys and of values, laid out for products of bytes.
//!
//! Keys are turned, so that a vector has four elements of 16 keys; values are interleaved, so that one has an element of
//! four values 16 times.

use std::arch::x86_64::*;

use super::ahead::Ahead;
use super::digits::{DIGITS, ValueScales, number};
use super::rows::{GROUPS, LANES, QUAD, Rows, SHARED};
use crate::kernel::attention::blocks::BLOCK;
use crate::kernel::attention::few::MAX_HEAD_DIM;

/// Elements of a head that are interleaved at once.
pub(super) const CHUNK: usize = 64;

/// Steps of the work, about, in which 16 elements of 16 keys are turned, ...
const TURN: usize = 3;
/// ... [`CHUNK`] elements of four values are interleaved, ...
const INTERLEAVE: usize = 2;
/// ... and the scales of [`CHUNK`] elements of all keys are widened, or those of values prepared.
const WIDEN: usize = 3;
const PREPARE: usize = 9;

/// Steps in which keys of `D` elements are laid out.
pub(super) const fn steps_of_keys<const D: usize>() -> usize {
    D / CHUNK * (GROUPS * (CHUNK / 16) * TURN + WIDEN)
}

/// The same for values.
pub(super) const fn steps_of_values<const D: usize>() -> usize {
    D / CHUNK * (LANES * INTERLEAVE + PREPARE)
}

/// Scales of a head, at most.
const MAX_SCALES: usize = MAX_HEAD_DIM / SHARED;

/// A block of keys, and one of values.
#[derive(Default)]
pub(super) struct Layout {
    /// (head_dim / 4).
    pub keys: Vec<KeyQuads>,
    /// (n_scales).
    pub key_scales: Vec<[f32; BLOCK]>,
    /// (head_dim / [`CHUNK`], [`LANES`]).
    pub values: Vec<ValueQuads>,
    /// (n_scales).
    pub value_scales: Vec<ValueScales>,
}

impl Layout {
    /// For heads of as many elements.
    pub fn fit(&mut self, head_dim: usize) {
        let n_scales = head_dim / SHARED;
        let quads = KeyQuads([[0; QUAD]; BLOCK]);
        self.keys.resize(head_dim / QUAD, quads);
        self.key_scales.resize(n_scales, [0.0; BLOCK]);
        let quads = ValueQuads([[0; QUAD]; CHUNK]);
        self.values.resize(head_dim / CHUNK * LANES, quads);
        self.value_scales.resize(n_scales, ValueScales::NONE);
    }

    /// Turns keys, and widens their scales.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    pub fn set_keys<const D: usize>(&mut self, k: &Rows, ahead: &mut Ahead) {
        ahead.steps(D / CHUNK * WIDEN);
        widen_scales::<D>(k, &mut self.key_scales);
        turn::<D>(k, ahead, &mut self.keys);
    }

    /// Interleaves values, and prepares their scales.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    pub fn set_values<const D: usize>(&mut self, v: &Rows, ahead: &mut Ahead) {
        ahead.steps(D / CHUNK * PREPARE);
        let mut scales = [[0.0; BLOCK]; MAX_SCALES];
        let scales = &mut scales[..D / SHARED];
        widen_scales::<D>(v, scales);
        for (to, scales) in self.value_scales.iter_mut().zip(scales) {
            *to = ValueScales::of(scales);
        }
        // Scales come first: their largest is long in coming, and this is done meanwhile.
        interleave::<D>(v, ahead, &mut self.values);
    }
}

/// The scales of a block as floats, from (rows, n_scales) halves; 0 behind the last row.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,f16c")]
fn widen_scales<const D: usize>(rows: &Rows, to: &mut [[f32; BLOCK]]) {
    let n_scales = const { D / SHARED };
    let halves = rows.scales.as_ptr();
    assert!(rows.scales.len() >= 2 * n_scales * BLOCK && to.len() == n_scales);
    // SAFETY: `reach`: as many halves and floats as were just compared.
    unsafe {
        if n_scales == 2 {
            for key in (0..BLOCK).step_by(LANES) {
                let pairs = _mm512_loadu_si512(halves.add(4 * key).cast());
                let first = _mm512_cvtepi32_epi16(pairs);
                let second = _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(pairs));
                _mm512_storeu_ps(to[0].as_mut_ptr().add(key), _mm512_cvtph_ps(first));
                _mm512_storeu_ps(to[1].as_mut_ptr().add(key), _mm512_cvtph_ps(second));
            }
        } else {
            // Four scales of each of eight keys, as numbers of 64 bits.
            let every = _mm512_set1_epi64((n_scales / 4) as i64);
            let places = _mm512_mul_epu32(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), every);
            for key in (0..BLOCK).step_by(8) {
                for four in (0..n_scales).step_by(4) {
                    let at = halves.add(2 * (key * n_scales + four)).cast::<i64>();
                    let mut fours = _mm512_i64gather_epi64::<8>(places, at);
                    for to in &mut to[four..four + 4] {
                        let scales = _mm256_cvtph_ps(_mm512_cvtepi64_epi16(fours));
                        _mm256_storeu_ps(to.as_mut_ptr().add(key), scales);
                        fours = _mm512_srli_epi64::<16>(fours);
                    }
                }
            }
        }
    }
    if rows.n < BLOCK {
        for to in to {
            to[rows.n..].fill(0.0);
        }
    }
}

/// Four elements of each key of a block.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct KeyQuads([[u8; QUAD]; BLOCK]);

impl KeyQuads {
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn groups(&self) -> [__m512i; GROUPS] {
        let mut groups = [_mm512_setzero_si512(); GROUPS];
        for (group, keys) in groups.iter_mut().zip(self.0.as_chunks::<LANES>().0) {
            // SAFETY: `reach`: four bytes of 16 keys are a vector.
            *group = unsafe { _mm512_loadu_si512(keys.as_ptr().cast()) };
        }
        groups
    }
}

/// [`CHUNK`] elements of four values, those of keys i, 16 + i, 32 + i and 48 + i, in the order that [`in_order`] undoes.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct ValueQuads([[u8; QUAD]; CHUNK]);

impl ValueQuads {
    /// Two vectors of elements that share the first scale, and two of those that share the second.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn halves(&self) -> [[__m512i; 2]; 2] {
        let mut halves = [[_mm512_setzero_si512(); 2]; 2];
        let vectors = self.0.as_chunks::<LANES>().0;
        for (vector, quads) in halves.as_flattened_mut().iter_mut().zip(vectors) {
            // SAFETY: `reach`: 16 elements of four values are a vector.
            *vector = unsafe { _mm512_loadu_si512(quads.as_ptr().cast()) };
        }
        halves
    }
}

/// Turns the keys of a block, 16 at a time, and adds 128 to each byte.
#[inline]
#[target_feature(enable = "avx512f")]
fn turn<const D: usize>(k: &Rows, ahead: &mut Ahead, to: &mut [KeyQuads]) {
    assert!(k.bytes.len() >= BLOCK * D && to.len() * QUAD >= D);
    let offset = _mm512_set1_epi8(-128);
    for first in (0..k.n).step_by(LANES) {
        for chunk in (0..D).step_by(CHUNK) {
            // SAFETY: `reach`: all of this lies in the 64 rows.
            let rows = unsafe { k.bytes.as_ptr().add(first * D + chunk) };
            for part in 0..CHUNK / 16 {
                ahead.steps(TURN);
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
                    // SAFETY: `reach`: there is room for all elements of a key, and the 16 keys are in the block.
                    unsafe {
                        let quads = to.as_mut_ptr().add(chunk / QUAD + 4 * part + i);
                        _mm512_storeu_si512(quads.cast::<i32>().add(first).cast(), column);
                    }
                }
            }
        }
    }
}

/// Interleaves the values of a block, four at a time.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn interleave<const D: usize>(v: &Rows, ahead: &mut Ahead, to: &mut [ValueQuads]) {
    assert!(v.bytes.len() >= BLOCK * D && to.len() * CHUNK >= LANES * D);
    // Quarter l has elements 8 l to 8 l + 7, and 32 + 8 l to 32 + 8 l + 7, which have another scale.
    let by_scale = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    for quad in 0..LANES {
        for chunk in (0..D).step_by(CHUNK) {
            ahead.steps(INTERLEAVE);
            // SAFETY: `reach`: all of this lies in the 64 rows, and four vectors are as many bytes as there is room for.
            unsafe {
                let mut rows = [by_scale; QUAD];
                for (i, row) in rows.iter_mut().enumerate() {
                    let at = (i * LANES + quad) * D + chunk;
                    let bytes = _mm512_loadu_si512(v.bytes.as_ptr().add(at).cast());
                    *row = _mm512_permutexvar_epi64(by_scale, bytes);
                }
                let [a, b, c, d] = rows;
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
    [
        _mm512_permutex2var_ps(a, first, b),
        _mm512_permutex2var_ps(a, second, b),
    ]
}

/// Adds sums of values, digits of vectors as in [`ValueQuads`] for each of two scales, to `factor` times [`CHUNK`] elements of
/// a head.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn add_elements(
    sums: &[[[__m512i; DIGITS]; 2]; 2],
    scales: &[ValueScales; 2],
    factor: f32,
    to: &mut [f32; CHUNK],
) {
    let factor = _mm512_set1_ps(factor);
    for (half, ([a, b], scales)) in sums.iter().zip(scales).enumerate() {
        let scale = _mm512_set1_ps(scales.of_sums);
        for (i, elements) in in_order([number(a), number(b)]).iter().enumerate() {
            // SAFETY: `reach`: a chunk is two halves of two vectors.
            unsafe {
                let to = to.as_mut_ptr().add(half * SHARED + i * LANES);
                let before = _mm512_mul_ps(_mm512_loadu_ps(to), factor);
                _mm512_storeu_ps(to, _mm512_fmadd_ps(*elements, scale, before));
            }
        }
    }
}
