//! Sixteen vectors of sixteen 32-bit numbers, turned.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_columns() {
        if !is_x86_feature_detected!("avx512f") {
            return;
        }
        let rows: [[f32; 16]; 16] =
            std::array::from_fn(|i| std::array::from_fn(|j| (16 * i + j) as f32));
        // SAFETY: the machine has the instructions, and an array of sixteen floats is a vector.
        let turned: [[f32; 16]; 16] = unsafe {
            let rows = std::mem::transmute::<[[f32; 16]; 16], [__m512; 16]>(rows);
            std::mem::transmute::<[__m512; 16], [[f32; 16]; 16]>(transpose(rows))
        };
        for (i, row) in rows.iter().enumerate() {
            for (j, number) in row.iter().enumerate() {
                assert_eq!(turned[j][i], *number);
            }
        }
    }
}
