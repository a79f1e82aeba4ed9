//! Small facts about a group of values, and the roundings that the formats share.

use half::f16;

/// A group of values below this, or in a range below it, vanishes: half of the smallest step that `f16` can say.
pub(super) const TINY: f32 = 1.0 / (1 << 25) as f32;

/// The value of the largest magnitude, sign included; the first of equals. 0 for no values.
pub(super) fn extreme(values: &[f32]) -> f32 {
    let larger = |a: f32, &b: &f32| if a.abs() < b.abs() { b } else { a };
    values.iter().fold(0.0, larger)
}

/// The smallest and the largest value.
pub(super) fn range(values: &[f32]) -> (f32, f32) {
    let start = (f32::INFINITY, f32::NEG_INFINITY);
    let widen = |(min, max): (f32, f32), &x: &f32| (min.min(x), max.max(x));
    values.iter().fold(start, widen)
}

/// `1 / x`, and 0 for 0: a block whose scale is zero has zero steps everywhere.
pub(super) fn inverse(x: f32) -> f32 {
    if x == 0.0 { 0.0 } else { 1.0 / x }
}

/// The nearest integer for a magnitude below 2^22, ties to even.
///
/// Adding 1.5 * 2^23 leaves no bits for a fraction, so the addition itself rounds. Unlike a call to
/// `round`, this becomes two vector instructions on every CPU.
pub(super) fn nearest(x: f32) -> f32 {
    const SHIFT: f32 = 12_582_912.0;
    (x + SHIFT) - SHIFT
}

/// The `f16` nearest to `x` whose magnitude is not smaller.
///
/// A scale of scales must not be rounded down: the group with the largest scale would no longer reach
/// its extreme. It matters when the scale is subnormal, where neighbours lie far apart.
pub(super) fn f16_at_least(x: f32) -> f16 {
    let near = f16::from_f32(x);
    if near.to_f32().abs() < x.abs() {
        f16::from_bits(near.to_bits() + 1)
    } else {
        near
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equal_magnitudes_is_the_extreme() {
        assert_eq!(extreme(&[1.0, -3.0, 3.0]), -3.0);
        assert_eq!(extreme(&[1.0, 3.0, -3.0]), 3.0);
        assert_eq!(extreme(&[]), 0.0);
    }

    #[test]
    fn nearest_agrees_with_the_library() {
        for i in -4000..4000 {
            let x = i as f32 / 16.0;
            assert_eq!(nearest(x), x.round_ties_even(), "{x}");
        }
    }

    #[test]
    fn f16_is_rounded_away_from_zero() {
        for x in [1e-9_f32, 3.1e-8, 6.1e-8, 0.1, 0.30001, 1000.3] {
            let up = f16_at_least(x);
            assert!(up.to_f32() >= x, "{x}");
            assert!(
                f16::from_bits(up.to_bits() - 1).to_f32() < x,
                "{x}: not the nearest"
            );
            assert_eq!(f16_at_least(-x), -up);
        }
        assert_eq!(f16_at_least(0.0), f16::ZERO);
        assert_eq!(f16_at_least(0.25).to_f32(), 0.25, "exact values stay");
    }
}
