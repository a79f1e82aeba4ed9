//! Super-blocks with minima, Q2_K, Q4_K and Q5_K: `x = d * scale[g] * q - dmin * min[g]`.
//!
//! `GROUPS` groups share the 256 values; everything but `d` and `dmin` is an unsigned integer. Encoding
//! looks for the smallest weighted sum of squared errors, in three steps:
//!
//! 1. For each group alone, find the best line `x = step * q - min`.
//! 2. Choose `d` and `dmin` so that the largest step and the largest minimum have the largest integers.
//!    For each group try the scales next to `step / d`. Values that are rounded to such a step have a
//!    mean error, and some minimum removes it: try the integers next to that one, and keep the best
//!    pair. From here on errors are those of the numbers as stored.
//! 3. Given all integers, the best `d` and `dmin` solve two linear equations. Repeat step 2 with them
//!    while that helps.

use super::line::{Line, best_line, best_min, integer, squared_error};
use super::rounding::{f16_at_least, inverse, nearest};
use half::f16;

/// How often step 3 is tried.
const ROUNDS: usize = 2;

/// The largest integers of a format: q, and scales and minima.
#[derive(Clone, Copy)]
pub(super) struct Steps {
    pub q: u8,
    pub scale: u8,
}

/// A super-block with its integers unpacked.
pub(super) struct Affine<const GROUPS: usize> {
    pub d: f16,
    pub dmin: f16,
    pub scales: [u8; GROUPS],
    pub mins: [u8; GROUPS],
    pub q: [u8; 256],
}

/// What a super-block is to say, and how much each value counts.
struct Target<'a> {
    values: &'a [f32; 256],
    weights: &'a [f32; 256],
    steps: Steps,
}

impl<const GROUPS: usize> Affine<GROUPS> {
    const GROUP: usize = 256 / GROUPS;

    /// The best super-block that the search finds.
    pub fn fit(values: &[f32; 256], weights: &[f32; 256], steps: Steps) -> Self {
        let target = Target {
            values,
            weights,
            steps,
        };
        let lines = Self::best_lines(&target);
        let largest = |f: fn(&Line) -> f32| lines.iter().map(f).fold(0.0, f32::max);
        let top = f32::from(steps.scale);
        let d = f16_at_least(largest(|line| line.step) / top);
        let dmin = f16_at_least(largest(|line| line.min) / top);
        let (mut best, mut error) = Self::with_scales_of_scales(&target, &lines, [d, dmin]);
        for _ in 0..ROUNDS {
            let refined = best.best_scales(&target);
            let (next, next_error) = Self::with_scales_of_scales(&target, &lines, refined);
            if next_error >= error {
                break;
            }
            (best, error) = (next, next_error);
        }
        best
    }

    /// Step 1, for all groups.
    fn best_lines(target: &Target) -> [Line; GROUPS] {
        let groups = target.values.chunks_exact(Self::GROUP);
        let weights = target.weights.chunks_exact(Self::GROUP);
        let mut lines = [Line::default(); GROUPS];
        for ((line, group), weights) in lines.iter_mut().zip(groups).zip(weights) {
            *line = best_line(group, weights, f32::from(target.steps.q));
        }
        lines
    }

    /// Step 2: the best integers for this `d` and `dmin`, and their squared error.
    fn with_scales_of_scales(
        target: &Target,
        lines: &[Line; GROUPS],
        [d, dmin]: [f16; 2],
    ) -> (Self, f32) {
        let mut block = Affine {
            d,
            dmin,
            scales: [0; GROUPS],
            mins: [0; GROUPS],
            q: [0; 256],
        };
        let unit = Line {
            step: d.to_f32(),
            min: dmin.to_f32(),
        };
        let mut total_error = 0.0;
        for (g, &line) in lines.iter().enumerate() {
            let range = g * Self::GROUP..(g + 1) * Self::GROUP;
            let (group, weights) = (
                &target.values[range.clone()],
                &target.weights[range.clone()],
            );
            let (scale, min, error) = best_integers((group, weights), line, unit, target.steps);
            block.scales[g] = scale as u8;
            block.mins[g] = min as u8;
            total_error += error;
            let per_step = inverse(unit.step * scale);
            for (q, x) in block.q[range].iter_mut().zip(group) {
                let steps = (x + unit.min * min) * per_step;
                *q = integer(steps, f32::from(target.steps.q)) as u8;
            }
        }
        (block, total_error)
    }

    /// Step 3: with `u = scale q` and `v = min`, the `d` and `dmin` that minimise `Σ w (x - d u + dmin v)²`.
    fn best_scales(&self, target: &Target) -> [f16; 2] {
        let (mut uu, mut uv, mut vv, mut xu, mut xv) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (i, &q) in self.q.iter().enumerate() {
            let g = i / Self::GROUP;
            let (x, w) = (f64::from(target.values[i]), f64::from(target.weights[i]));
            let u = f64::from(self.scales[g]) * f64::from(q);
            let v = f64::from(self.mins[g]);
            uu += w * u * u;
            uv += w * u * v;
            vv += w * v * v;
            xu += w * x * u;
            xv += w * x * v;
        }
        let determinant = uu * vv - uv * uv;
        let (d, dmin) = if uu == 0.0 && vv > 0.0 {
            (0.0, -xv / vv)
        } else if determinant > 0.0 {
            let (d, dmin) = (xu * vv - xv * uv, xu * uv - xv * uu);
            (d / determinant, dmin / determinant)
        } else {
            return [self.d, self.dmin];
        };
        [f16::from_f64(d.max(0.0)), f16::from_f64(dmin.max(0.0))]
    }
}

/// Step 2 for one group: the scale and the minimum, as multiples of `unit`, and their squared error.
fn best_integers(
    (group, weights): (&[f32], &[f32]),
    line: Line,
    unit: Line,
    steps: Steps,
) -> (f32, f32, f32) {
    let (top, top_q) = (f32::from(steps.scale), f32::from(steps.q));
    let near_scale = nearest(line.step * inverse(unit.step));
    let mut best = (0.0, 0.0, f32::INFINITY);
    for scale_change in [0.0, -1.0, 1.0] {
        let scale = (near_scale + scale_change).clamp(0.0, top);
        let step = unit.step * scale;
        let line_min = best_min(group, weights, Line { step, ..line }, top_q);
        let near_min = nearest((line_min * inverse(unit.min)).min(top));
        for min_change in [0.0, -1.0, 1.0] {
            let min = (near_min + min_change).clamp(0.0, top);
            let candidate = Line {
                step,
                min: unit.min * min,
            };
            let error = squared_error(group, weights, candidate, top_q);
            if error < best.2 {
                best = (scale, min, error);
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All values lie 0.3 below an integer, so a minimum of 0.3 leaves no error. Fails when only the
    /// neighbours of the line's own minimum are tried: 0.3 is 15 units away.
    #[test]
    fn the_minimum_removes_the_mean_error() {
        let group: [f32; 32] = std::array::from_fn(|i| (i % 31 + 1) as f32 - 0.3);
        let [line, unit] = [0.0, 0.02].map(|min| Line { step: 1.0, min });
        let steps = Steps { q: 31, scale: 63 };
        let (scale, min, error) = best_integers((&group, &[1.0; 32]), line, unit, steps);
        assert_eq!((scale, min), (1.0, 15.0));
        assert!(error < 1e-6, "{error}");
    }
}
