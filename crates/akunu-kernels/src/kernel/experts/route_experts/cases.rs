//! The cases of `route_experts`.

use super::*;
use crate::case::{Case, Rng};

/// Experts, those of a row, gating, groups and those used, whether normalised, whether biased.
type Shape = ([u32; 2], u32, [u32; 2], bool, bool);

/// Each gating, with and without the rest; one expert and the most there can be; as many as there are lanes, and one more; the
/// routers of Qwen 3, gpt-oss, DeepSeek V3 and Ling 2.
pub fn all() -> Vec<Case> {
    let shapes: [Shape; 10] = [
        ([1, 1], SOFTMAX, [1, 1], false, false),
        ([128, 8], SOFTMAX, [1, 1], true, false),
        ([64, 6], SOFTMAX, [1, 1], false, true),
        ([32, 4], SOFTMAX_OF_CHOSEN, [1, 1], false, false),
        ([33, 16], SIGMOID, [1, 1], true, true),
        ([256, 8], SIGMOID, [8, 4], true, true),
        ([512, 16], SQRT_SOFTPLUS, [1, 1], true, true),
        ([16, 16], SQRT_SOFTPLUS, [1, 1], false, false),
        ([96, 3], SIGMOID, [32, 5], false, true),
        ([40, 4], SOFTMAX, [4, 1], true, false),
    ];
    let mut cases: Vec<Case> = shapes.map(|shape| case(shape, 3, false)).into();
    cases.push(case(shapes[1], 4, true));
    cases.push(case(shapes[5], 2, true));
    cases
}

/// Weights are a few operations from the logits: 1e-12. Which experts are chosen must be the same. Some rows of a router that is
/// `broken` have a NaN or an infinity.
fn case(shape: Shape, n_rows: u32, broken: bool) -> Case {
    let ([n_experts, n_used], gating, [n_groups, n_groups_used], normalise, has_bias) = shape;
    let params = RouteParams {
        n_rows,
        n_experts,
        n_used,
        gating,
        n_groups,
        n_groups_used,
        normalise: u32::from(normalise),
        has_bias: u32::from(has_bias),
        scale: 2.5,
        layer: 7,
        ..Default::default()
    };
    let mut rng = Rng::new(u64::from(n_experts * 37 + n_used));
    let mut logits = rng.floats((n_rows * n_experts) as usize, 6.0);
    if broken {
        logits[n_experts as usize + 3] = f32::NAN;
        logits[n_experts as usize - 1] = f32::INFINITY;
    }
    let n_results = (n_rows * n_used) as usize;
    let label = format!("{shape:?}, broken {broken}");
    Case::new(label, &params, 1e-12)
        .bind(&logits)
        .bind(&rng.floats(if has_bias { n_experts as usize } else { 0 }, 0.3))
        .bind(&vec![u32::MAX; n_results])
        .bind(&vec![f32::NAN; n_results])
        .bind(&[0u32])
}
