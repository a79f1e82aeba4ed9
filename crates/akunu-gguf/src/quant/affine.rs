//! Super-blocks with minima, Q2_K, Q4_K and Q5_K: `x = d * scale[g] * q - dmin * min[g]`.
//!
//! `GROUPS` groups share the 256 values; everything but `d` and `dmin` is an unsigned integer. Encoding
//! looks for the smallest sum of squared errors, in three steps:
//!
//! 1. For each group alone, draw a line `x = step * q - min` through its range, try steps around it, and
//!    given the integers `q = round((x + min) / step)` take the least-squares line (min never negative).
//! 2. Choose `d` and `dmin` so that the largest step and the largest minimum have the largest integers;
//!    for each group try the integers next to `step / d` and `min / dmin` and keep the best pair. From
//!    here on errors are those of the numbers as stored.
//! 3. Given all integers, the best `d` and `dmin` solve two linear equations. Repeat step 2 with them
//!    while that helps.

use super::rounding::{f16_at_least, inverse, nearest, range};
use super::sums::{OFFSETS, Sums, sums, total};
use half::f16;

/// A range below this vanishes: half of the smallest step that `f16` can say.
const TINY: f32 = 1.0 / (1 << 25) as f32;
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

/// `x = step * q - min`.
#[derive(Clone, Copy, Default)]
struct Line {
    step: f32,
    min: f32,
}

impl<const GROUPS: usize> Affine<GROUPS> {
    const GROUP: usize = 256 / GROUPS;

    /// The best super-block that the search finds.
    pub fn fit(values: &[f32; 256], steps: Steps) -> Self {
        let mut lines = [Line::default(); GROUPS];
        for (line, group) in lines.iter_mut().zip(values.chunks_exact(Self::GROUP)) {
            *line = best_line(group, f32::from(steps.q));
        }
        let largest = |f: fn(&Line) -> f32| lines.iter().map(f).fold(0.0, f32::max);
        let top = f32::from(steps.scale);
        let d = f16_at_least(largest(|line| line.step) / top);
        let dmin = f16_at_least(largest(|line| line.min) / top);
        let (mut best, mut error) = Self::with_scales_of_scales(values, &lines, [d, dmin], steps);
        for _ in 0..ROUNDS {
            let refined = best.best_scales(values);
            let (next, next_error) = Self::with_scales_of_scales(values, &lines, refined, steps);
            if next_error >= error {
                break;
            }
            (best, error) = (next, next_error);
        }
        best
    }

    /// Step 2: the best integers for this `d` and `dmin`, and their squared error.
    fn with_scales_of_scales(
        values: &[f32; 256],
        lines: &[Line; GROUPS],
        [d, dmin]: [f16; 2],
        steps: Steps,
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
        for (g, group) in values.chunks_exact(Self::GROUP).enumerate() {
            let (scale, min, error) = best_integers(group, lines[g], unit, steps);
            block.scales[g] = scale as u8;
            block.mins[g] = min as u8;
            total_error += error;
            let line = Line {
                step: unit.step * scale,
                min: unit.min * min,
            };
            let per_step = inverse(line.step);
            for (q, x) in block.q[g * Self::GROUP..].iter_mut().zip(group) {
                *q = integer((x + line.min) * per_step, f32::from(steps.q)) as u8;
            }
        }
        (block, total_error)
    }

    /// Step 3: with `u = scale q` and `v = min`, the `d` and `dmin` that minimise `Σ (x - d u + dmin v)²`.
    fn best_scales(&self, values: &[f32; 256]) -> [f16; 2] {
        let (mut uu, mut uv, mut vv, mut xu, mut xv) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (i, (&x, &q)) in values.iter().zip(&self.q).enumerate() {
            let g = i / Self::GROUP;
            let u = f64::from(self.scales[g]) * f64::from(q);
            let v = f64::from(self.mins[g]);
            uu += u * u;
            uv += u * v;
            vv += v * v;
            xu += f64::from(x) * u;
            xv += f64::from(x) * v;
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

/// Step 1: the line that serves this group best when nothing need be shared.
fn best_line(group: &[f32], top: f32) -> Line {
    let (low, high) = range(group);
    let (low, width) = (low.min(0.0), high - low.min(0.0));
    if width < TINY {
        return Line {
            step: 0.0,
            min: -low,
        };
    }
    let x_sum = total(group, |x| x);
    let (mut best, mut most_removed) = (Line::default(), f32::NEG_INFINITY);
    for offset in OFFSETS {
        let per_step = (top + offset) / width;
        let sums = sums(group, |x| integer((x - low) * per_step, top));
        let (line, removed) = least_squares(&sums, x_sum, group.len() as f32);
        if removed > most_removed {
            (best, most_removed) = (line, removed);
        }
    }
    best
}

/// The line through the points `(q, x)` with the smallest squared error, and how much of `Σx²` it
/// removes. The minimum is held at zero when the best would be negative.
fn least_squares(sums: &Sums, x_sum: f32, n: f32) -> (Line, f32) {
    let determinant = n * sums.qq - sums.q * sums.q;
    let mut line = Line {
        step: (n * sums.xq - x_sum * sums.q) * inverse(determinant),
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
        - (step * step * sums.qq - 2.0 * step * min * sums.q + n * min * min);
    (line, removed)
}

/// Step 2 for one group: the scale and the minimum, as multiples of `unit`, and their squared error.
fn best_integers(group: &[f32], line: Line, unit: Line, steps: Steps) -> (f32, f32, f32) {
    let top = f32::from(steps.scale);
    let near_scale = nearest(line.step * inverse(unit.step));
    let near_min = nearest(line.min * inverse(unit.min));
    let mut best = (0.0, 0.0, f32::INFINITY);
    for scale_change in [0.0, -1.0, 1.0] {
        let scale = (near_scale + scale_change).clamp(0.0, top);
        for min_change in [0.0, -1.0, 1.0] {
            let min = (near_min + min_change).clamp(0.0, top);
            let candidate = Line {
                step: unit.step * scale,
                min: unit.min * min,
            };
            let error = squared_error(group, candidate, f32::from(steps.q));
            if error < best.2 {
                best = (scale, min, error);
            }
        }
    }
    best
}

fn squared_error(group: &[f32], line: Line, top: f32) -> f32 {
    let per_step = inverse(line.step);
    total(group, |x| {
        let q = integer((x + line.min) * per_step, top);
        let error = x - (line.step * q - line.min);
        error * error
    })
}

/// The integer nearest to `x` from 0 to `top`.
#[inline(always)]
fn integer(x: f32, top: f32) -> f32 {
    nearest(x.clamp(0.0, top))
}
