//! Blocks of 32-bit numbers, turned.

use std::arch::x86_64::*;

/// `out[i][j] = rows[j][i]`.
///
/// First pairs, then fours of rows are interleaved within the quarters of a vector, then the quarters are exchanged.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn transpose(rows: [__m512; 16]) -> [__m512; 16] {
    let mut pairs = rows;
    for i in (0..16).step_by(2) {
        pairs[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
    }
    // Quarter l of fours[4 g + j]: column 4 l + j of rows 4 g to 4 g + 3.
    let mut fours = rows;
    for g in (0..16).step_by(4) {
        let [a, b, c, d] = [0, 1, 2, 3].map(|i| _mm512_castps_pd(pairs[g + i]));
        fours[g] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
        fours[g + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
        fours[g + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
        fours[g + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
    }
    let mut out = rows;
    for j in 0..4 {
        let [a, b, c, d] = [0, 4, 8, 12].map(|g| fours[g + j]);
        let even = |x, y| _mm512_shuffle_f32x4::<0b10_00_10_00>(x, y);
        let odd = |x, y| _mm512_shuffle_f32x4::<0b11_01_11_01>(x, y);
        out[j] = even(even(a, b), even(c, d));
        out[4 + j] = even(odd(a, b), odd(c, d));
        out[8 + j] = odd(even(a, b), even(c, d));
        out[12 + j] = odd(odd(a, b), odd(c, d));
    }
    out
}

/// Writes a block of 16 rows of 16 numbers as columns of 16.
///
/// # Safety
/// - `level`: AVX-512 F.
/// - `reach`: there are 256 numbers at both places.
#[inline]
#[target_feature(enable = "avx512f")]
pub unsafe fn turn_16(from: *const f32, to: *mut f32) {
    // SAFETY: passes on `level` and `reach`.
    unsafe {
        let rows = std::array::from_fn(|r| _mm512_loadu_ps(from.add(16 * r)));
        for (column, numbers) in transpose(rows).into_iter().enumerate() {
            _mm512_storeu_ps(to.add(16 * column), numbers);
        }
    }
}

/// Writes a block of 8 rows of 8 numbers as halves of columns of 16.
///
/// # Safety
/// - `level`: AVX.
/// - `reach`: there are 64 numbers at `from`, and places for eight at every sixteenth of `to`.
#[inline]
#[target_feature(enable = "avx")]
pub unsafe fn turn_8(from: *const f32, to: *mut f32) {
    // SAFETY: passes on `level` and `reach`.
    unsafe {
        // Rows r and r + 4 side by side: the quarters of a vector are then those of the columns.
        let four = |r: usize, half: usize| {
            let low = _mm_loadu_ps(from.add(8 * r + 4 * half));
            _mm256_insertf128_ps::<1>(
                _mm256_castps128_ps256(low),
                _mm_loadu_ps(from.add(8 * (r + 4) + 4 * half)),
            )
        };
        for half in 0..2 {
            let [a, b, c, d] = [0, 1, 2, 3].map(|r| four(r, half));
            let (ab, cd) = (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
            let (ab_high, cd_high) = (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
            let columns = [
                _mm256_shuffle_ps::<0b01_00_01_00>(ab, cd),
                _mm256_shuffle_ps::<0b11_10_11_10>(ab, cd),
                _mm256_shuffle_ps::<0b01_00_01_00>(ab_high, cd_high),
                _mm256_shuffle_ps::<0b11_10_11_10>(ab_high, cd_high),
            ];
            for (i, column) in columns.into_iter().enumerate() {
                _mm256_storeu_ps(to.add(16 * (4 * half + i)), column);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Isa;

    /// Turns `N` rows of `N` numbers, each of which is different.
    fn check<const N: usize>(turn: unsafe fn(*const f32, *mut f32)) {
        let rows: Vec<f32> = (0..N * N).map(|i| i as f32).collect();
        let mut columns = [-1.0; 256];
        // SAFETY: the caller looked for the instructions; there are as many rows, and places for columns of 16.
        unsafe { turn(rows.as_ptr(), columns.as_mut_ptr()) };
        for (column, numbers) in columns.chunks_exact(16).enumerate() {
            for (row, &number) in numbers.iter().enumerate() {
                let is_written = row < N && column < N;
                let wanted = if is_written {
                    rows[row * N + column]
                } else {
                    -1.0
                };
                assert_eq!(number, wanted, "row {row}, column {column} of {N}");
            }
        }
    }

    #[test]
    fn rows_become_columns() {
        for isa in Isa::available() {
            match isa {
                Isa::Amx | Isa::Avx512 => check::<16>(turn_16),
                Isa::AvxVnni | Isa::Avx2 => check::<8>(turn_8),
                _ => {}
            }
        }
    }
}
