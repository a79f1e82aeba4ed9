//! `route_experts_f32`: which experts a row uses, and what their results are weighed by.
//!
//! ```text
//! p = softmax(l) | sigmoid(l) | l | sqrt(softplus(l));   s = p + bias
//! of the groups only those with the largest sum of their two best s are left
//! ids = the n_used experts of largest s, the first of equal ones;   w = p[ids]
//! w = softmax(w) where p = l;   w = w / max(Σ w, 2^-14) on request;   w = scale * w
//! ```
//!
//! A router whose logits are not all finite chooses nothing: its weights are zeros, and the fault becomes the number of its
//! layer, counted from 1, unless there was a fault before.

#[cfg(feature = "testing")]
mod cases;

use akunu_types::params::RouteParams;

use crate::chip::{ChipConfig, SIMD_WIDTH};
use crate::extent::product;
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

/// Experts, at most.
pub const MAX_EXPERTS: u32 = 512;
/// Experts of a row, at most.
pub const MAX_USED: u32 = 16;
/// Groups, at most.
pub const MAX_GROUPS: u32 = 32;

/// Sums of weights that are divided by are at least the smallest normal number of 16 bits.
const LEAST_SUM: f32 = 6.103_515_6e-5;

/// [`RouteParams::gating`]: a softmax of all logits.
pub const SOFTMAX: u32 = 0;
/// [`RouteParams::gating`]: a sigmoid of each logit.
pub const SIGMOID: u32 = 1;
/// [`RouteParams::gating`]: a softmax of the chosen logits.
pub const SOFTMAX_OF_CHOSEN: u32 = 2;
/// [`RouteParams::gating`]: the root of the softplus of each logit.
pub const SQRT_SOFTPLUS: u32 = 3;

buffers! {
    pub struct Buffers, Slices(p: RouteParams at 5) {
        logits: read f32 = logits_len(&p),
        bias: read f32 = [p.n_experts * u32::from(p.has_bias != 0)],
        ids: write u32 = [p.n_rows, p.n_used],
        weights: write f32 = [p.n_rows, p.n_used],
        fault: change u32 = [1],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("route_experts_f32", ""),
    family: Family::Experts,
    source: "route_experts",
    launch,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

fn launch(args: &Args, _: &ChipConfig) -> Launch {
    let p: RouteParams = args.params();
    Launch::new([p.n_rows, 1, 1], [SIMD_WIDTH, 1, 1])
}

/// Numbers that no launch has room for make a buffer larger than any.
fn logits_len(p: &RouteParams) -> usize {
    let fits = (1..=MAX_EXPERTS).contains(&p.n_experts)
        && p.n_used <= MAX_USED.min(p.n_experts)
        && (1..=MAX_GROUPS.min(p.n_experts)).contains(&p.n_groups);
    match fits {
        true => product(&[p.n_rows, p.n_experts]),
        false => usize::MAX,
    }
}

fn twin(t: &mut Twin) {
    let p: RouteParams = t.params();
    let b = Slices::of(t);
    let n_used = p.n_used as usize;
    for (row, logits) in b.logits.chunks_exact(p.n_experts as usize).enumerate() {
        let own = row * n_used..(row + 1) * n_used;
        let (ids, weights) = (&mut b.ids[own.clone()], &mut b.weights[own]);
        if !route(&p, logits, b.bias, ids, weights) && b.fault[0] == 0 {
            b.fault[0] = p.layer + 1;
        }
    }
}

/// The experts of a row and their weights; whether its logits are finite.
pub fn route(
    p: &RouteParams,
    logits: &[f32],
    bias: &[f32],
    ids: &mut [u32],
    weights: &mut [f32],
) -> bool {
    if !logits.iter().all(|logit| logit.is_finite()) {
        for (id, number) in ids.iter_mut().zip(0..) {
            *id = number;
        }
        weights.fill(0.0);
        return false;
    }
    let numbers = activated(p.gating, logits);
    let mut scores = numbers.clone();
    if p.has_bias != 0 {
        for (score, bias) in scores.iter_mut().zip(bias) {
            *score += bias;
        }
    }
    if p.n_groups > 1 {
        leave_groups(p, &mut scores);
    }
    for (id, weight) in ids.iter_mut().zip(weights.iter_mut()) {
        let best = best(&scores);
        scores[best] = f32::NEG_INFINITY;
        (*id, *weight) = (best as u32, numbers[best]);
    }
    if p.gating == SOFTMAX_OF_CHOSEN {
        softmax(weights);
    }
    if p.normalise != 0 {
        let sum: f32 = weights.iter().sum();
        weights
            .iter_mut()
            .for_each(|weight| *weight /= sum.max(LEAST_SUM));
    }
    weights.iter_mut().for_each(|weight| *weight *= p.scale);
    true
}

fn activated(gating: u32, logits: &[f32]) -> Vec<f32> {
    let mut numbers = logits.to_vec();
    let each: fn(f32) -> f32 = match gating {
        SOFTMAX => {
            softmax(&mut numbers);
            return numbers;
        }
        SIGMOID => |l| 1.0 / (1.0 + (-l).exp()),
        SOFTMAX_OF_CHOSEN => return numbers,
        _ => |l| (l.max(0.0) + (-l.abs()).max(-80.0).exp().ln_1p()).sqrt(),
    };
    numbers
        .iter_mut()
        .for_each(|number| *number = each(*number));
    numbers
}

fn softmax(numbers: &mut [f32]) {
    let largest = numbers.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    numbers
        .iter_mut()
        .for_each(|number| *number = (*number - largest).exp());
    let sum: f32 = numbers.iter().sum();
    numbers.iter_mut().for_each(|number| *number /= sum);
}

/// The first of the largest; the last where all are taken.
fn best(scores: &[f32]) -> usize {
    let mut best = None;
    for (at, &score) in scores.iter().enumerate() {
        if score > best.map_or(f32::NEG_INFINITY, |best: usize| scores[best]) {
            best = Some(at);
        }
    }
    best.unwrap_or(scores.len() - 1)
}

/// Leaves the experts of the best groups, and makes the scores of the others -inf.
fn leave_groups(p: &RouteParams, scores: &mut [f32]) {
    let size = scores.len() / p.n_groups as usize;
    let sums: Vec<f32> = (scores.chunks_exact(size).take(p.n_groups as usize))
        .map(|group| {
            let (mut first, mut second) = (f32::NEG_INFINITY, f32::NEG_INFINITY);
            for &score in group {
                second = second.max(first.min(score));
                first = first.max(score);
            }
            first + second
        })
        .collect();
    let mut left = sums.clone();
    let mut is_left = vec![false; sums.len()];
    for _ in 0..(p.n_groups_used as usize).min(sums.len()) {
        let best = best(&left);
        (left[best], is_left[best]) = (f32::NEG_INFINITY, true);
    }
    for (group, is_left) in scores.chunks_exact_mut(size).zip(is_left) {
        if !is_left {
            group.fill(f32::NEG_INFINITY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row's experts and weights.
    fn routed(p: RouteParams, logits: &[f32], bias: &[f32]) -> (Vec<u32>, Vec<f32>) {
        let n = p.n_used as usize;
        let (mut ids, mut weights) = (vec![0; n], vec![0.0; n]);
        assert!(route(&p, logits, bias, &mut ids, &mut weights));
        (ids, weights)
    }

    const TWO_OF_FOUR: RouteParams = RouteParams {
        n_rows: 1,
        n_experts: 4,
        n_used: 2,
        gating: SIGMOID,
        n_groups: 1,
        n_groups_used: 1,
        normalise: 0,
        has_bias: 0,
        scale: 1.0,
        layer: 0,
        _pad0: 0,
        _pad1: 0,
    };

    /// Fails when a bias counts for a weight, when the second of equal experts is chosen, or when softmax is taken of the wrong
    /// logits.
    #[test]
    fn a_bias_chooses_but_does_not_weigh() {
        let biased = RouteParams {
            has_bias: 1,
            ..TWO_OF_FOUR
        };
        let (ids, weights) = routed(biased, &[0.0, 0.0, 0.0, 0.0], &[0.0, 0.0, 9.0, 0.0]);
        assert_eq!((ids, weights), (vec![2, 0], vec![0.5, 0.5]));
        let of_chosen = RouteParams {
            gating: SOFTMAX_OF_CHOSEN,
            ..TWO_OF_FOUR
        };
        let (ids, weights) = routed(of_chosen, &[1.0, 3.0, 2.0, 3.0], &[]);
        assert_eq!((ids, weights), (vec![1, 3], vec![0.5, 0.5]));
    }

    /// Fails when a group is scored by its best expert alone: 3 + 2.5 is more than 4 + 0.
    #[test]
    fn a_group_counts_by_its_two_best() {
        let grouped = RouteParams {
            gating: SOFTMAX_OF_CHOSEN,
            n_groups: 2,
            ..TWO_OF_FOUR
        };
        let (ids, _) = routed(grouped, &[4.0, 0.0, 2.5, 3.0], &[]);
        assert_eq!(ids, [3, 2]);
    }
}
