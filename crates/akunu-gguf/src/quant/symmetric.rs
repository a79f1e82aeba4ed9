//! Super-blocks around zero, Q3_K, Q6_K and IQ4_XS: `x = d * scale[g] * q`.
//!
//! Groups of 16 or 32 values; q and the scales are signed, and q is an integer or one of a table. Encoding looks for the smallest
//! weighted sum of squared errors, in three steps:
//!
//! 1. For each group alone, try steps that make its extreme the first or the last number. Given the numbers q nearest to
//!    `x / step`, the best step is `Σwxq / Σwq²`, and it removes `(Σwxq)² / Σwq²` of the error: keep the one that
//!    removes most.
//! 2. Choose `d` so that the largest step has the largest scale; for each group try the scales next to
//!    `step / d` and keep the best. From here on errors are those of the numbers as stored.
//! 3. Given all scales and q, the best `d` is again a quotient of sums. Repeat step 2 with it while that
//!    helps.

use super::rounding::{TINY, extreme, f16_at_least, inverse, nearest};
use super::sums::{OFFSETS, sums, total};
use half::f16;

/// How often step 3 is tried.
const ROUNDS: usize = 2;

/// The numbers that values are rounded to, in steps.
pub(super) trait Numbers: Copy {
    /// The number nearest to `x`.
    fn nearest(self, x: f32) -> f32;

    /// The inverses of the steps that a search tries for a group with this extreme.
    fn per_step(self, extreme: f32) -> impl Iterator<Item = f32>;
}

/// The integers from `-half` to `half - 1`.
#[derive(Clone, Copy)]
pub(super) struct Integers(pub f32);

impl Numbers for Integers {
    #[inline(always)]
    fn nearest(self, x: f32) -> f32 {
        let Integers(half) = self;
        nearest(x.clamp(-half, half - 1.0))
    }

    fn per_step(self, extreme: f32) -> impl Iterator<Item = f32> {
        let Integers(half) = self;
        OFFSETS
            .into_iter()
            .map(move |offset| -(half + offset) / extreme)
    }
}

/// The groups of a format.
#[derive(Clone, Copy)]
pub(super) struct Groups<N> {
    /// Values of a group.
    pub len: usize,
    /// The numbers that q may be.
    pub numbers: N,
    /// A scale lies in `-scale .. scale`.
    pub scale: i16,
}

/// A super-block with its numbers unpacked.
pub(super) struct Symmetric {
    pub d: f16,
    /// The scale of each group; zeros behind the last one.
    pub scales: [i8; 16],
    pub q: [i8; 256],
}

/// What a super-block is to say, and how much each value counts.
struct Target<'a, N> {
    values: &'a [f32; 256],
    weights: &'a [f32; 256],
    groups: Groups<N>,
}

impl Symmetric {
    /// The best super-block that the search finds.
    pub fn fit<N: Numbers>(
        values: &[f32; 256],
        weights: &[f32; 256],
        groups: Groups<N>,
    ) -> Symmetric {
        let target = Target {
            values,
            weights,
            groups,
        };
        let of_groups = values
            .chunks_exact(groups.len)
            .zip(weights.chunks_exact(groups.len));
        let mut steps = [0.0; 16];
        for (step, (group, weights)) in steps.iter_mut().zip(of_groups) {
            *step = best_step(group, weights, groups.numbers);
        }
        let d = f16_at_least(extreme(&steps) / -f32::from(groups.scale));
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

    /// `Σ w x scale q / Σ w (scale q)²`: the best `d` for the numbers as they are.
    fn best_d<N>(&self, target: &Target<N>) -> f16 {
        let (mut xu, mut uu) = (0.0_f32, 0.0_f32);
        for (i, &q) in self.q.iter().enumerate() {
            let unit = f32::from(self.scales[i / target.groups.len]) * f32::from(q);
            let weighted = target.weights[i] * unit;
            xu += weighted * target.values[i];
            uu += weighted * unit;
        }
        f16::from_f32(xu * inverse(uu))
    }
}

/// Step 1: the step that serves this group best when it need not be shared.
pub(super) fn best_step<N: Numbers>(group: &[f32], weights: &[f32], numbers: N) -> f32 {
    let extreme = extreme(group);
    if extreme.abs() < TINY {
        return 0.0;
    }
    let (mut best, mut most_removed) = (0.0, 0.0);
    for per_step in numbers.per_step(extreme) {
        let sums = sums(group, weights, |x| numbers.nearest(x * per_step));
        let removed = sums.xq * sums.xq * inverse(sums.qq);
        if removed > most_removed {
            most_removed = removed;
            best = sums.xq / sums.qq;
        }
    }
    best
}

/// Step 2: the best scales and numbers for this `d`, and their squared error.
fn with_scale_of_scales<N: Numbers>(
    target: &Target<N>,
    steps: &[f32; 16],
    d: f16,
) -> (Symmetric, f32) {
    let (mut scales, mut all_q, mut total_error) = ([0; 16], [0; 256], 0.0);
    let Groups {
        len,
        numbers,
        scale,
    } = target.groups;
    let (low, high) = (-f32::from(scale), f32::from(scale) - 1.0);
    let d_value = d.to_f32();
    for (g, step) in steps.iter().enumerate().take(all_q.len() / len) {
        let range = g * len..(g + 1) * len;
        let (group, weights) = (
            &target.values[range.clone()],
            &target.weights[range.clone()],
        );
        let near = nearest(step * inverse(d_value));
        let (mut best_scale, mut best_error) = (0.0, f32::INFINITY);
        for scale in [near, near - 1.0, near + 1.0] {
            let scale = scale.clamp(low, high);
            let error = squared_error(group, weights, d_value * scale, numbers);
            if error < best_error {
                (best_scale, best_error) = (scale, error);
            }
        }
        scales[g] = best_scale as i8;
        total_error += best_error;
        let per_step = inverse(d_value * best_scale);
        for (q, x) in all_q[range].iter_mut().zip(group) {
            *q = numbers.nearest(x * per_step) as i8;
        }
    }
    let block = Symmetric {
        d,
        scales,
        q: all_q,
    };
    (block, total_error)
}

fn squared_error<N: Numbers>(group: &[f32], weights: &[f32], step: f32, numbers: N) -> f32 {
    let per_step = inverse(step);
    total(group, weights, |x| {
        let error = x - step * numbers.nearest(x * per_step);
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
    let d = f16::from_f32(best_step(values, weights, Integers(half)));
    (d, inverse(d.to_f32()))
}
