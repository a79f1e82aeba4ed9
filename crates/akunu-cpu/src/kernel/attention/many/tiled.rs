//! Attention of prompts by tile instructions.
//!
//! As in [`super`], rows (query, head) are lanes, so that the steps between the products are the same. With `n` keys
//! of a block, `d` elements of a head and `r` rows:
//!
//! ```text
//! S  (n, r) = K (n, d) · Qᵗ (d, r)          K as it lies in the cache; Qᵗ is made once for a job
//! Oᵗ (d, r) = Vᵗ (d, n) · P (n, r) + Oᵗ     Vᵗ is turned in registers; P is S after exp
//! ```
//!
//! bf16 has 8 significant bits, so every factor is split in two parts, and three products are summed ([`split`]): the
//! result is as good as that of f32 to 16 bits, while keys and values that are f16 lose nothing.
//!
//! A tile has a line for each of 16 rows of a left factor, or for 16 pairs of rows of a right one; pair p is p and
//! 16 + p of 32.

use std::arch::x86_64::*;
use std::ops::Range;

use akunu_kernels::kernel::pages::{Pages, SlotAt};
use akunu_types::KvFormat;
use akunu_types::kv_format::Q8_BLOCK;

use super::{Job, hide_rest, shrink_columns};
use crate::amx::{COLUMNS, TILE, Tiles, split};
use crate::kernel::attention::blocks::{BLOCK, LOWEST, blocks};
use crate::kernel::attention::work::weigh;
use crate::simd::Lanes;
use crate::simd::transpose::transpose;

/// Bytes of both parts of a tile.
const PARTS: usize = 2 * TILE;
/// Rows of a left factor, or columns of a right one, that a block of sums has.
const SIDE: usize = 32;
/// Lines of a tile.
const LINES: usize = 16;

/// With fewer queries tiles are mostly empty.
pub(super) const MIN_ROWS: usize = 16;

/// The matrices of a job.
struct Work<'a> {
    /// `Qᵗ` in tiles: (rows / 16, d / 32).
    q: *mut u8,
    /// `K` in tiles: (n / 16, d / 32).
    k: *mut u8,
    /// `Vᵗ` in tiles: (d / 16, n / 32).
    v: *mut u8,
    /// `P` in tiles: (rows / 16, n / 32).
    p: *mut u8,
    /// Scores, then weights, (BLOCK, rows).
    s: &'a mut [f32],
    /// Sums of values, (d, rows).
    o: &'a mut [f32],
    /// The largest score of each row, the sum of its weights, and by what its sums shrink with this block.
    peaks: &'a mut [f32],
    weights: &'a mut [f32],
    factors: &'a mut [f32],
}

impl Job<'_> {
    /// Whether tiles can do this job.
    pub(super) fn fits_tiles(&self) -> bool {
        let rows = self.n_queries * self.problem.group;
        self.problem.head_dim.is_multiple_of(SIDE) && rows >= MIN_ROWS
    }

    /// Rows, rounded up to whole blocks of sums.
    fn tile_rows(&self) -> usize {
        (self.n_queries * self.problem.group).next_multiple_of(SIDE)
    }

    /// Bytes of the tiles of `Qᵗ`, `K`, `Vᵗ` and `P`.
    fn tile_bytes(&self) -> [usize; 4] {
        let (rows, head_dim) = (self.tile_rows(), self.problem.head_dim);
        let of = |lines: usize, columns: usize| lines / LINES * (columns / COLUMNS) * PARTS;
        [
            of(rows, head_dim),
            of(BLOCK, head_dim),
            of(head_dim, BLOCK),
            of(rows, BLOCK),
        ]
    }

    /// Floats that the matrices take.
    pub(super) fn room_in_tiles(&self) -> usize {
        let tiles: usize = self.tile_bytes().iter().sum();
        let rows = self.tile_rows();
        tiles / size_of::<f32>() + (BLOCK + self.problem.head_dim + 3) * rows
    }

    fn tile_work<'m>(&self, memory: &'m mut [f32]) -> Work<'m> {
        let rows = self.tile_rows();
        let [q, k, v, p] = self.tile_bytes();
        let (tiles, rest) = memory.split_at_mut((q + k + v + p) / size_of::<f32>());
        let (s, rest) = rest.split_at_mut(BLOCK * rows);
        let (o, rest) = rest.split_at_mut(self.problem.head_dim * rows);
        let (peaks, rest) = rest.split_at_mut(rows);
        let (weights, rest) = rest.split_at_mut(rows);
        let first = tiles.as_mut_ptr().cast::<u8>();
        Work {
            q: first,
            k: first.wrapping_add(q),
            v: first.wrapping_add(q + k),
            p: first.wrapping_add(q + k + v),
            s,
            o,
            peaks,
            weights,
            factors: &mut rest[..rows],
        }
    }

    /// # Safety
    /// - `level`: AMX, as for all functions here.
    /// - `own`: the rows of the output belong to this part.
    /// - `reach`: `memory` has [`Job::room_in_tiles`] floats and begins at a cache line.
    #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
    pub(super) unsafe fn run_in_tiles<L: Lanes>(&self, memory: &mut [f32]) {
        let mut work = self.tile_work(memory);
        // SAFETY: passes on `level`, `reach` and `own`.
        unsafe {
            let mut tiles = Tiles::configure();
            self.turn_queries(&work);
            work.o.fill(0.0);
            work.peaks.fill(LOWEST);
            work.weights.fill(0.0);
            for keys in blocks(self.keys()) {
                self.attend_in_tiles::<L>(&mut tiles, &mut work, keys);
            }
            self.store_turned(&work);
        }
    }

    /// Attends to a block of keys.
    #[inline]
    #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
    unsafe fn attend_in_tiles<L: Lanes>(
        &self,
        tiles: &mut Tiles,
        work: &mut Work,
        keys: Range<usize>,
    ) {
        let (rows, head_dim) = (self.tile_rows(), self.problem.head_dim);
        let (n, keys_at) = (keys.len(), self.keys_at(&keys));
        // SAFETY: `reach`: the tiles of both factors are made before they are multiplied, and the sums have room.
        unsafe {
            self.cut_keys(work, &keys_at, n);
            self.turn_values(work, &keys_at[..n]);
            for key in (0..BLOCK).step_by(SIDE) {
                let k = pair_of_lines(work.k, key, head_dim);
                for row in (0..rows).step_by(SIDE) {
                    tiles.zero();
                    let q = pair_of_lines(work.q, row, head_dim);
                    tiles.multiply_sums(k, q, head_dim / COLUMNS);
                    let to = work.s.as_mut_ptr().add(key * rows + row);
                    tiles.store(to, rows * size_of::<f32>(), true);
                }
            }
            self.problem.cap::<L>(work.s);
            self.hide(work.s, keys, rows);
            hide_rest(work.s, n, rows);
            let (peaks, weights) = (&mut *work.peaks, &mut *work.weights);
            weigh::<L>(work.s, [peaks, weights, work.factors], BLOCK, rows);
            split_weights(work, rows);
            shrink_columns::<L>(work.o, work.factors);
            for d in (0..head_dim).step_by(SIDE) {
                let v = pair_of_lines(work.v, d, BLOCK);
                for row in (0..rows).step_by(SIDE) {
                    let sums = work.o.as_mut_ptr().add(d * rows + row);
                    tiles.load(sums, rows * size_of::<f32>(), true);
                    let p = pair_of_lines(work.p, row, BLOCK);
                    tiles.multiply_sums(v, p, BLOCK / COLUMNS);
                    tiles.store(sums, rows * size_of::<f32>(), true);
                }
            }
        }
    }

    /// `Qᵗ`, scaled: line p of a tile has pair p of each of 16 rows.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    unsafe fn turn_queries(&self, work: &Work) {
        let (problem, head_dim) = (self.problem, self.problem.head_dim);
        let scale = _mm512_set1_ps(problem.params.scale);
        for group in 0..self.tile_rows() / LINES {
            for cell in 0..head_dim / COLUMNS {
                let mut parts = [[_mm512_setzero_ps(); LINES]; 2];
                for r in 0..LINES {
                    let row = group * LINES + r;
                    if row >= self.n_queries * problem.group {
                        break;
                    }
                    let head = self.kv_head * problem.group + row % problem.group;
                    let at = problem.query_at(self.first + row / problem.group, head);
                    let numbers = &problem.q[at + cell * COLUMNS..][..COLUMNS];
                    // SAFETY: `reach`: 32 numbers.
                    let halves = [0, LINES].map(|at| unsafe {
                        _mm512_mul_ps(_mm512_loadu_ps(numbers.as_ptr().add(at)), scale)
                    });
                    let both = split(halves[0], halves[1]);
                    for (part, pairs) in parts.iter_mut().zip(both) {
                        part[r] = _mm512_castsi512_ps(pairs);
                    }
                }
                let to = work
                    .q
                    .wrapping_add((group * (head_dim / COLUMNS) + cell) * PARTS);
                // SAFETY: `reach`: both parts of a tile.
                unsafe { store_turned_parts(parts, to) };
            }
        }
    }

    /// `K`: a line for each key. Keys behind the last one are zeros.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    unsafe fn cut_keys(&self, work: &Work, keys_at: &[SlotAt; BLOCK], n: usize) {
        let (problem, head_dim) = (self.problem, self.problem.head_dim);
        for (key, &at) in keys_at.iter().enumerate() {
            for cell in 0..head_dim / COLUMNS {
                let tile = (key / LINES * (head_dim / COLUMNS) + cell) * PARTS;
                let to = work.k.wrapping_add(tile + 64 * (key % LINES));
                let numbers = [0, LINES].map(|half| match key < n {
                    true => sixteen(&problem.pages, problem.k, at, cell * COLUMNS + half),
                    false => _mm512_setzero_ps(),
                });
                let [first, rest] = split(numbers[0], numbers[1]);
                // SAFETY: `reach`: a line of both parts of a tile.
                unsafe {
                    _mm512_storeu_si512(to.cast(), first);
                    _mm512_storeu_si512(to.add(TILE).cast(), rest);
                }
            }
        }
    }

    /// `Vᵗ`: a line for each element of the head. Values behind the last one are zeros.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    unsafe fn turn_values(&self, work: &Work, values_at: &[SlotAt]) {
        let (problem, head_dim) = (self.problem, self.problem.head_dim);
        let value = |key: usize, d: usize| match values_at.get(key) {
            Some(&at) => sixteen(&problem.pages, problem.v, at, d),
            None => _mm512_setzero_ps(),
        };
        for group in 0..head_dim / LINES {
            for cell in 0..BLOCK / COLUMNS {
                let mut parts = [[_mm512_setzero_ps(); LINES]; 2];
                for p in 0..LINES {
                    let key = cell * COLUMNS + p;
                    let both = split(value(key, group * LINES), value(key + LINES, group * LINES));
                    for (part, pairs) in parts.iter_mut().zip(both) {
                        part[p] = _mm512_castsi512_ps(pairs);
                    }
                }
                let to = work
                    .v
                    .wrapping_add((group * (BLOCK / COLUMNS) + cell) * PARTS);
                // SAFETY: `reach`: both parts of a tile.
                unsafe { store_turned_parts(parts, to) };
            }
        }
    }

    /// Turns the sums back, sixteen rows at a time, and stores the outputs.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    unsafe fn store_turned(&self, work: &Work) {
        let (problem, rows) = (self.problem, self.tile_rows());
        let len = LINES * problem.head_dim;
        // SAFETY: `own`: the keys are not needed any more, and their tiles take more memory.
        let sums = unsafe { std::slice::from_raw_parts_mut(work.k.cast::<f32>(), len) };
        for first in (0..self.n_queries * problem.group).step_by(LINES) {
            for d in (0..problem.head_dim).step_by(LINES) {
                // SAFETY: `reach`: sixteen numbers of sixteen lines of the sums, and of the memory for them turned.
                unsafe {
                    let line = |i: usize| work.o.as_ptr().add((d + i) * rows + first);
                    let lines = std::array::from_fn(|i| _mm512_loadu_ps(line(i)));
                    for (r, row) in transpose(lines).into_iter().enumerate() {
                        _mm512_storeu_ps(sums.as_mut_ptr().add(r * problem.head_dim + d), row);
                    }
                }
            }
            for (r, sum) in sums.chunks_exact(problem.head_dim).enumerate() {
                let row = first + r;
                if row < self.n_queries * problem.group {
                    let head = self.kv_head * problem.group + row % problem.group;
                    let query = self.first + row / problem.group;
                    // SAFETY: passes on `level` and `reach`.
                    unsafe {
                        problem.finish((query, head), sum, (work.weights[row], work.peaks[row]))
                    };
                }
            }
        }
    }
}

/// Sixteen elements from `d` on, a multiple of sixteen, of one head of a slot.
#[inline]
#[target_feature(enable = "avx512f")]
fn sixteen(pages: &Pages, pool: &[u8], at: SlotAt, d: usize) -> __m512 {
    match pages.format {
        KvFormat::F16 => {
            let numbers = &pool[at.numbers + 2 * d..][..2 * LINES];
            // SAFETY: `reach`: sixteen numbers.
            _mm512_cvtph_ps(unsafe { _mm256_loadu_si256(numbers.as_ptr().cast()) })
        }
        KvFormat::Q8 => {
            let numbers = &pool[at.numbers + d..][..LINES];
            let scale = &pool[at.scales + 2 * (d / Q8_BLOCK as usize)..];
            let scale = i16::from_le_bytes([scale[0], scale[1]]);
            // SAFETY: `reach`: sixteen numbers.
            let whole = unsafe { _mm_loadu_si128(numbers.as_ptr().cast()) };
            let whole = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(whole));
            _mm512_mul_ps(whole, _mm512_cvtph_ps(_mm256_set1_epi16(scale)))
        }
    }
}

/// The tiles of lines `first` to `first + 31`, which are `columns` long: 16 lines and the next 16.
fn pair_of_lines(tiles: *mut u8, first: usize, columns: usize) -> [*const u8; 2] {
    let of_sixteen = columns / COLUMNS * PARTS;
    let at = first / LINES * of_sixteen;
    [at, at + of_sixteen].map(|at| tiles.wrapping_add(at).cast_const())
}

/// `P`: line p of a tile has weights p and 16 + p of each of 16 rows.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn split_weights(work: &Work, rows: usize) {
    for group in 0..rows / LINES {
        for cell in 0..BLOCK / COLUMNS {
            let to = work
                .p
                .wrapping_add((group * (BLOCK / COLUMNS) + cell) * PARTS);
            for p in 0..LINES {
                let key = cell * COLUMNS + p;
                let weights = |key: usize| {
                    let weights = &work.s[key * rows + group * LINES..][..LINES];
                    // SAFETY: `reach`: sixteen weights.
                    unsafe { _mm512_loadu_ps(weights.as_ptr()) }
                };
                let [first, rest] = split(weights(key), weights(key + LINES));
                // SAFETY: `reach`: line p of both parts of a tile.
                unsafe {
                    _mm512_storeu_si512(to.add(64 * p).cast(), first);
                    _mm512_storeu_si512(to.add(TILE + 64 * p).cast(), rest);
                }
            }
        }
    }
}

/// Turns both parts of sixteen lines and stores them as a tile.
///
/// # Safety
/// `reach`: `to` has room for both parts.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store_turned_parts(parts: [[__m512; LINES]; 2], to: *mut u8) {
    for (part, lines) in parts.into_iter().enumerate() {
        for (p, line) in transpose(lines).into_iter().enumerate() {
            // SAFETY: passes on `reach`.
            unsafe { _mm512_storeu_ps(to.add(part * TILE + 64 * p).cast(), line) };
        }
    }
}
