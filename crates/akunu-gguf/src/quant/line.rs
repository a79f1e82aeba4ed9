//! The line `x = step * q - min` that serves a group of values best, q from 0 to `top`.
//!
//! Given the integers `q = round((x + min) / step)`, the line with the smallest weighted sum of squared
//! errors solves two linear equations. Draw the line through the group's range and try steps around it:
//! each gives integers, and these give a line. To the best of those lines round the values again, which
//! may give other integers and a better line.

use super::rounding::{TINY, inverse, nearest, range};
use super::sums::{OFFSETS, Sums, sums, total};
use half::f16;

/// How often the values are rounded to the line that the integers before gave.
const REFITS: usize = 3;

/// `x = step * q - min`, min never negative.
#[derive(Clone, Copy, Default)]
pub(super) struct Line {
    pub step: f32,
    pub min: f32,
}

/// The line that serves this group best when nothing need be shared.
pub(super) fn best_line(group: &[f32], weights: &[f32], top: f32) -> Line {
    let (low, high) = range(group);
    let (low, width) = (low.min(0.0), high - low.min(0.0));
    if width < TINY {
        return Line {
            step: 0.0,
            min: -low,
        };
    }
    let x_sum = total(group, weights, |x| x);
    let w_sum = weights.iter().sum();
    let fit = |min: f32, per_step: f32| {
        let sums = sums(group, weights, |x| integer((x + min) * per_step, top));
        least_squares(&sums, x_sum, w_sum)
    };
    let (mut best, mut most_removed) = (Line::default(), f32::NEG_INFINITY);
    for offset in OFFSETS {
        let (line, removed) = fit(-low, (top + offset) / width);
        if removed > most_removed {
            (best, most_removed) = (line, removed);
        }
    }
    for _ in 0..REFITS {
        let (line, removed) = fit(best.min, inverse(best.step));
        if removed <= most_removed {
            break;
        }
        (best, most_removed) = (line, removed);
    }
    best
}

/// The line through the points `(q, x)` with the smallest squared error, and how much of `Σwx²` it
/// removes. The minimum is held at zero when the best would be negative.
fn least_squares(sums: &Sums, x_sum: f32, w_sum: f32) -> (Line, f32) {
    let determinant = w_sum * sums.qq - sums.q * sums.q;
    let mut line = Line {
        step: (w_sum * sums.xq - x_sum * sums.q) * inverse(determinant),
        min: (sums.q * sums.xq - sums.qq * x_sum) * inverse(determinant),
    };
    if line.min < 0.0 || line.step <= 0.0 {
        line = Line {
            step: (sums.xq * inverse(sums.qq)).max(0.0),
            min: 0.0,
        };
    }
    let Line { step, min } = line;
    let removed = 2.0 * (step * sums.xq - min * x_sum)
        - (step * step * sums.qq - 2.0 * step * min * sums.q + w_sum * min * min);
    (line, removed)
}

/// The best minimum for the integers that a group has on a line, `Σw (step q - x) / Σw`, or zero when
/// that is negative.
pub(super) fn best_min(group: &[f32], weights: &[f32], line: Line, top: f32) -> f32 {
    let per_step = inverse(line.step);
    let above = total(group, weights, |x| {
        line.step * integer((x + line.min) * per_step, top) - x
    });
    (above * inverse(weights.iter().sum())).max(0.0)
}

/// The weighted squared error of a group on a line.
pub(super) fn squared_error(group: &[f32], weights: &[f32], line: Line, top: f32) -> f32 {
    let per_step = inverse(line.step);
    total(group, weights, |x| {
        let q = integer((x + line.min) * per_step, top);
        let error = x - (line.step * q - line.min);
        error * error
    })
}

/// The integer nearest to `x` from 0 to `top`.
#[inline(always)]
pub(super) fn integer(x: f32, top: f32) -> f32 {
    nearest(x.clamp(0.0, top))
}

/// `d`, `m` and the integers of `x = d * q + m`, with `m` the smallest value and `top` the largest
/// integer.
pub(super) fn ends(values: &[f32; 32], top: f32) -> (f16, f16, [u8; 32]) {
    let (min, max) = range(values);
    let d = (max - min) / top;
    let per_step = inverse(d);
    let q = values.map(|x| ((x - min) * per_step + 0.5).min(top) as u8);
    (f16::from_f32(d), f16::from_f32(min), q)
}

/// The same by least squares. Values are counted from the smallest one, so that a [`Line`] can say all
/// that `m` can.
pub(super) fn best_stored_line(
    values: &[f32; 32],
    weights: &[f32; 32],
    top: f32,
) -> (f16, f16, [u8; 32]) {
    let (low, _) = range(values);
    let line = best_line(&values.map(|x| x - low), weights, top);
    let (d, m) = (f16::from_f32(line.step), f16::from_f32(low - line.min));
    let (stored_m, per_step) = (m.to_f32(), inverse(d.to_f32()));
    let q = values.map(|x| integer((x - stored_m) * per_step, top) as u8);
    (d, m, q)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails when the values are not rounded again to the line that was found: the integers that they
    /// have on it would then have a better line.
    #[test]
    fn the_integers_of_a_line_have_no_better_one() {
        let (top, weights) = (15.0, [1.0; 32]);
        for seed in 1..=8 {
            let group: [f32; 32] = std::array::from_fn(|i| ((i * i * seed) % 97) as f32);
            let line = best_line(&group, &weights, top);
            let per_step = inverse(line.step);
            let sums = sums(&group, &weights, |x| {
                integer((x + line.min) * per_step, top)
            });
            let (next, _) = least_squares(&sums, group.iter().sum(), 32.0);
            let change = (next.step - line.step).abs() + (next.min - line.min).abs();
            assert!(change < 1e-4, "{seed}: {change}");
        }
    }
}
