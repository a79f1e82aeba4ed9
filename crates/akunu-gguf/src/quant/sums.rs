//! The sums that a least-squares fit of `x` by a small integer `q` needs.

/// Sums over a group of values `x` with weights `w`, and their integers `q`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    /// Sum of w q.
    pub q: f32,
    /// Sum of w q².
    pub qq: f32,
    /// Sum of w x q.
    pub xq: f32,
}

/// How far from the full range of integers the searches try to stretch or squeeze a group. Zero first:
/// of equally good answers, the plain one wins.
pub(super) const OFFSETS: [f32; 19] = [
    0.0, -0.1, 0.1, -0.2, 0.2, -0.3, 0.3, -0.4, 0.4, -0.5, 0.5, -0.6, 0.6, -0.7, 0.7, -0.8, 0.8,
    -0.9, 0.9,
];

/// Independent partial sums, so that the loop becomes vector instructions. Groups are multiples.
const LANES: usize = 8;

/// The sums over `group`, where `quantised` gives the integer of a value.
#[inline(always)]
pub(super) fn sums(group: &[f32], weights: &[f32], quantised: impl Fn(f32) -> f32) -> Sums {
    let (mut q_sum, mut qq_sum, mut xq_sum) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
    let weights = weights.as_chunks::<LANES>().0;
    for (chunk, weights) in group.as_chunks::<LANES>().0.iter().zip(weights) {
        for lane in 0..LANES {
            let q = quantised(chunk[lane]);
            let wq = weights[lane] * q;
            q_sum[lane] += wq;
            qq_sum[lane] += wq * q;
            xq_sum[lane] += wq * chunk[lane];
        }
    }
    Sums {
        q: q_sum.iter().sum(),
        qq: qq_sum.iter().sum(),
        xq: xq_sum.iter().sum(),
    }
}

/// The sum of `w f(x)` over `group`.
#[inline(always)]
pub(super) fn total(group: &[f32], weights: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let mut partial = [0.0; LANES];
    let weights = weights.as_chunks::<LANES>().0;
    for (chunk, weights) in group.as_chunks::<LANES>().0.iter().zip(weights) {
        for lane in 0..LANES {
            partial[lane] += weights[lane] * f(chunk[lane]);
        }
    }
    partial.iter().sum()
}
