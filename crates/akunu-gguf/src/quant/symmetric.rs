//! Super-blocks around zero, Q3_K and Q6_K: `x = d * scale[g] * q`.
//!
//! 16 groups of 16 values; q and the scales are signed. Encoding looks for the smallest sum of squared
//! errors, in three steps:
//!
//! 1. For each group alone, try steps around `extreme / -half`. Given the integers `q = round(x / step)`,
//!    the best step is `Σxq / Σq²`, and it removes `(Σxq)² / Σq²` of the error: keep the one that
//!    removes most.
//! 2. Choose `d` so that the largest step has the largest scale; for each group try the scales next to
//!    `step / d` and keep the best. From here on errors are those of the numbers as stored.
//! 3. Given all scales and q, the best `d` is again a quotient of sums. Repeat step 2 with it while that
//!    helps.

use super::rounding::{extreme, f16_at_least, inverse, nearest};
use super::sums::{OFFSETS, sums, total};
use half::f16;

/// Values in a group.
const GROUP: usize = 16;
/// A group below this vanishes: half of the smallest step that `f16` can say.
const TINY: f32 = 1.0 / (1 << 25) as f32;
/// How often step 3 is tried.
const ROUNDS: usize = 2;

/// The ranges of a format: q lies in `-q .. q`, a scale in `-scale .. scale`.
#[derive(Clone, Copy)]
pub(super) struct Halves {
    pub q: i16,
    pub scale: i16,
}

/// A super-block with its integers unpacked.
pub(super) struct Symmetric {
    pub d: f16,
    pub scales: [i8; 16],
    pub q: [i8; 256],
}

impl Symmetric {
    /// The best super-block that the search finds.
    pub fn fit(values: &[f32; 256], halves: Halves) -> Symmetric {
        let mut steps = [0.0; 16];
        for (step, group) in steps.iter_mut().zip(values.chunks_exact(GROUP)) {
            *step = best_step(group, f32::from(halves.q));
        }
        let d = f16_at_least(extreme(&steps) / -f32::from(halves.scale));
        let (mut best, mut error) = with_scale_of_scales(values, &steps, d, halves);
        for _ in 0..ROUNDS {
            let d = best.best_d(values);
            let (next, next_error) = with_scale_of_scales(values, &steps, d, halves);
            if next_error >= error {
                break;
            }
            (best, error) = (next, next_error);
        }
        best
    }

    /// `Σ x scale q / Σ (scale q)²`: the best `d` for the integers as they are.
    fn best_d(&self, values: &[f32; 256]) -> f16 {
        let (mut xu, mut uu) = (0.0_f32, 0.0_f32);
        for (i, (x, &q)) in values.iter().zip(&self.q).enumerate() {
            let unit = f32::from(self.scales[i / GROUP]) * f32::from(q);
            xu += x * unit;
            uu += unit * unit;
        }
        f16::from_f32(xu * inverse(uu))
    }
}

/// Step 1: the step that serves this group best when it need not be shared.
fn best_step(group: &[f32], half: f32) -> f32 {
    let extreme = extreme(group);
    if extreme.abs() < TINY {
        return 0.0;
    }
    let (mut best, mut most_removed) = (0.0, 0.0);
    for offset in OFFSETS {
        let per_step = -(half + offset) / extreme;
        let sums = sums(group, |x| integer(x * per_step, half));
        let removed = sums.xq * sums.xq * inverse(sums.qq);
        if removed > most_removed {
            most_removed = removed;
            best = sums.xq / sums.qq;
        }
    }
    best
}

/// Step 2: the best scales and integers for this `d`, and their squared error.
fn with_scale_of_scales(
    values: &[f32; 256],
    steps: &[f32; 16],
    d: f16,
    halves: Halves,
) -> (Symmetric, f32) {
    let (mut scales, mut all_q, mut total_error) = ([0; 16], [0; 256], 0.0);
    let half = f32::from(halves.q);
    let (low, high) = (-f32::from(halves.scale), f32::from(halves.scale) - 1.0);
    let d_value = d.to_f32();
    for (g, group) in values.chunks_exact(GROUP).enumerate() {
        let near = nearest(steps[g] * inverse(d_value));
        let (mut best_scale, mut best_error) = (0.0, f32::INFINITY);
        for scale in [near, near - 1.0, near + 1.0] {
            let scale = scale.clamp(low, high);
            let error = squared_error(group, d_value * scale, half);
            if error < best_error {
                (best_scale, best_error) = (scale, error);
            }
        }
        scales[g] = best_scale as i8;
        total_error += best_error;
        let per_step = inverse(d_value * best_scale);
        for (q, x) in all_q[g * GROUP..].iter_mut().zip(group) {
            *q = integer(x * per_step, half) as i8;
        }
    }
    let block = Symmetric {
        d,
        scales,
        q: all_q,
    };
    (block, total_error)
}

fn squared_error(group: &[f32], step: f32, half: f32) -> f32 {
    let per_step = inverse(step);
    total(group, |x| {
        let error = x - step * integer(x * per_step, half);
        error * error
    })
}

/// The integer nearest to `x` in `-half .. half`.
#[inline(always)]
fn integer(x: f32, half: f32) -> f32 {
    nearest(x.clamp(-half, half - 1.0))
}
