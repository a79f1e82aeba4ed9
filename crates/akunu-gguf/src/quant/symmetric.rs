//! Super-blocks around zero, Q3_K and Q6_K: `x = d * scale[g] * q`.
//!
//! 16 groups of 16 values; q and the scales are signed. Encoding looks for the smallest weighted
//! sum of squared errors, in three steps:
//!
//! 1. For each group alone, try steps around `extreme / -half`. Given the integers `q = round(x / step)`,
//!    the best step is `Σwxq / Σwq²`, and it removes `(Σwxq)² / Σwq²` of the error: keep the one that
//!    removes most.
//! 2. Choose `d` so that the largest step has the largest scale; for each group try the scales next to
//!    `step / d` and keep the best. From here on errors are those of the numbers as stored.
//! 3. Given all scales and q, the best `d` is again a quotient of sums. Repeat step 2 with it while that
//!    helps.

use super::rounding::{TINY, extreme, f16_at_least, inverse, nearest};
use super::sums::{OFFSETS, sums, total};
use half::f16;

/// Values in a group.
const GROUP: usize = 16;
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

/// What a super-block is to say, and how much each value counts.
struct Target<'a> {
    values: &'a [f32; 256],
    weights: &'a [f32; 256],
    halves: Halves,
}

impl Symmetric {
    /// The best super-block that the search finds.
    pub fn fit(values: &[f32; 256], weights: &[f32; 256], halves: Halves) -> Symmetric {
        let target = Target {
            values,
            weights,
            halves,
        };
        let groups = values.chunks_exact(GROUP).zip(weights.chunks_exact(GROUP));
        let mut steps = [0.0; 16];
        for (step, (group, weights)) in steps.iter_mut().zip(groups) {
            *step = best_step(group, weights, f32::from(halves.q));
        }
        let d = f16_at_least(extreme(&steps) / -f32::from(halves.scale));
        let (mut best, mut error) = with_scale_of_scales(&target, &steps, d);
        for _ in 0..ROUNDS {
            let d = best.best_d(&target);
            let (next, next_error) = with_scale_of_scales(&target, &steps, d);
            if next_error >= error {
                break;
            }
            (best, error) = (next, next_error);
        }
        best
    }

    /// `Σ w x scale q / Σ w (scale q)²`: the best `d` for the integers as they are.
    fn best_d(&self, target: &Target) -> f16 {
        let (mut xu, mut uu) = (0.0_f32, 0.0_f32);
        for (i, &q) in self.q.iter().enumerate() {
            let unit = f32::from(self.scales[i / GROUP]) * f32::from(q);
            let weighted = target.weights[i] * unit;
            xu += weighted * target.values[i];
            uu += weighted * unit;
        }
        f16::from_f32(xu * inverse(uu))
    }
}

/// Step 1: the step that serves this group best when it need not be shared.
fn best_step(group: &[f32], weights: &[f32], half: f32) -> f32 {
    let extreme = extreme(group);
    if extreme.abs() < TINY {
        return 0.0;
    }
    let (mut best, mut most_removed) = (0.0, 0.0);
    for offset in OFFSETS {
        let per_step = -(half + offset) / extreme;
        let sums = sums(group, weights, |x| integer(x * per_step, half));
        let removed = sums.xq * sums.xq * inverse(sums.qq);
        if removed > most_removed {
            most_removed = removed;
            best = sums.xq / sums.qq;
        }
    }
    best
}

/// Step 2: the best scales and integers for this `d`, and their squared error.
fn with_scale_of_scales(target: &Target, steps: &[f32; 16], d: f16) -> (Symmetric, f32) {
    let (mut scales, mut all_q, mut total_error) = ([0; 16], [0; 256], 0.0);
    let halves = target.halves;
    let half = f32::from(halves.q);
    let (low, high) = (-f32::from(halves.scale), f32::from(halves.scale) - 1.0);
    let d_value = d.to_f32();
    for (g, step) in steps.iter().enumerate() {
        let range = g * GROUP..(g + 1) * GROUP;
        let (group, weights) = (
            &target.values[range.clone()],
            &target.weights[range.clone()],
        );
        let near = nearest(step * inverse(d_value));
        let (mut best_scale, mut best_error) = (0.0, f32::INFINITY);
        for scale in [near, near - 1.0, near + 1.0] {
            let scale = scale.clamp(low, high);
            let error = squared_error(group, weights, d_value * scale, half);
            if error < best_error {
                (best_scale, best_error) = (scale, error);
            }
        }
        scales[g] = best_scale as i8;
        total_error += best_error;
        let per_step = inverse(d_value * best_scale);
        for (q, x) in all_q[range].iter_mut().zip(group) {
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

fn squared_error(group: &[f32], weights: &[f32], step: f32, half: f32) -> f32 {
    let per_step = inverse(step);
    total(group, weights, |x| {
        let error = x - step * integer(x * per_step, half);
        error * error
    })
}

/// The step of a plain block whose extreme becomes `-half` steps: as it is stored, and what to multiply
/// values with.
pub(super) fn step_of_extreme(values: &[f32; 32], half: f32) -> (f16, f32) {
    let d = extreme(values) / -half;
    (f16::from_f32(d), inverse(d))
}

/// The same for the step with the smallest squared error.
pub(super) fn best_stored_step(values: &[f32; 32], weights: &[f32; 32], half: f32) -> (f16, f32) {
    let d = f16::from_f32(best_step(values, weights, half));
    (d, inverse(d.to_f32()))
}

/// The integer nearest to `x` in `-half .. half`.
#[inline(always)]
fn integer(x: f32, half: f32) -> f32 {
    nearest(x.clamp(-half, half - 1.0))
}
