//! Philox 4x32-10: random bits as a pure function of a counter and a key.
//!
//! The noise of a token depends on the seed, the position and the token alone: no state is carried
//! from one launch to the next, and every executor gets the same bits.

/// Four words for a counter of four words and a key of two.
pub fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let product0 = 0xD251_1F53 * u64::from(counter[0]);
        let product1 = 0xCD9E_8D57 * u64::from(counter[2]);
        counter = [
            (product1 >> 32) as u32 ^ counter[1] ^ key[0],
            product1 as u32,
            (product0 >> 32) as u32 ^ counter[3] ^ key[1],
            product0 as u32,
        ];
        key = [
            key[0].wrapping_add(0x9E37_79B9),
            key[1].wrapping_add(0xBB67_AE85),
        ];
    }
    counter
}

/// A number strictly between 0 and 1.
pub fn open_unit(bits: u32) -> f32 {
    const BELOW_ONE: f32 = 1.0 - f32::EPSILON / 2.0;
    ((bits as f32 + 0.5) / (1u64 << 32) as f32).min(BELOW_ONE)
}

/// Gumbel noise: `-ln(e)` where `e = -ln(1 - u)` is exponential. The logarithm of a number near 1 would lose the digits of
/// a small u, which are those of the largest noise: there it is a series.
pub fn gumbel(bits: u32) -> f32 {
    let u = open_unit(bits);
    let e = if u < 1.0 / 256.0 {
        u * (1.0 + u * (0.5 + u * (1.0 / 3.0)))
    } else {
        -(1.0 - u).ln()
    };
    -e.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers that the authors of Philox published.
    #[test]
    fn known_answers() {
        assert_eq!(
            philox([0; 4], [0; 2]),
            [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]
        );
        assert_eq!(
            philox([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox(
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0]
            ),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn the_ends_of_the_interval_are_left_out() {
        assert!(open_unit(0) > 0.0);
        assert!(open_unit(u32::MAX) < 1.0);
        assert!(gumbel(0).is_finite() && gumbel(u32::MAX).is_finite());
    }

    /// Fails if the series and the logarithm do not meet, or if large noise has lost its digits.
    #[test]
    fn noise_has_all_its_digits() {
        for bits in [
            0,
            1,
            77,
            1 << 12,
            (1 << 24) - 1,
            1 << 24,
            1 << 30,
            u32::MAX - (1 << 22),
        ] {
            let u = (f64::from(bits) + 0.5) / (1u64 << 32) as f64;
            let exact = -(-(-u).ln_1p()).ln();
            let off = (f64::from(gumbel(bits)) - exact).abs();
            assert!(off < 2e-6 * exact.abs().max(1.0), "{bits}: off by {off}");
        }
    }
}
