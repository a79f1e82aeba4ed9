//! The cases of `expert_gemm`.

use super::*;
use crate::case::{Case, Rng};
use crate::kernel::experts::products::cases::{Shape, bind, case_of};
use crate::kernel::experts::products::{HAS_BIASES, HAS_SCALES};
use crate::kernel::experts::sort_experts::sort;
use akunu_types::params::SortExpertsParams;

/// Whose results they are: of experts drawn one by one, or all of one.
#[derive(Clone, Copy, Debug)]
pub enum Spread {
    /// Each of any expert.
    Any,
    /// Each of the last third of the experts.
    Some,
    /// All of one expert.
    One,
}

/// A shape, whether there are two weights, and whose results they are.
pub type GroupedShape = (Shape, bool, Spread);

/// Where a gate is far below zero its error is a large share of nearly nothing.
pub fn x_size(params: &ExpertParams) -> f32 {
    if params.is_gated != 0 { 0.05 } else { 1.0 }
}

/// The params of a case, and what its numbers are drawn from.
pub fn grouped_params(
    dtype: DType,
    at: usize,
    (shape, is_gated, _): GroupedShape,
    tile: u32,
) -> (ExpertParams, Rng) {
    let (params, rng) = case_of(dtype, at, shape);
    let grouped = ExpertParams {
        tile,
        is_gated: u32::from(is_gated),
        ..params
    };
    (grouped, rng)
}

/// Everything behind x, as sorted as it is for a kernel.
pub fn bind_rest(case: Case, grouped: &Grouped, spread: Spread, rng: &mut Rng) -> Case {
    let experts = &grouped.experts;
    let p = &experts.params;
    let ids: Vec<u32> = (0..experts.n_results())
        .map(|_| match spread {
            Spread::Any => rng.below(p.n_experts),
            Spread::Some => p.n_experts - 1 - rng.below(p.n_experts.div_ceil(3)),
            Spread::One => p.n_experts / 2,
        })
        .collect();
    let sorting = SortExpertsParams {
        n_results: experts.n_results(),
        n_experts: p.n_experts,
        tile: p.tile,
        ..Default::default()
    };
    let mut order = vec![0; ids.len()];
    let mut tiles = vec![0; (grouped.n_tiles() * TILE_WORDS) as usize];
    sort(&sorting, &ids, &mut order, &mut tiles);
    let mut filled = case.bind(&order).bind(&tiles);
    filled = filled.bind(&experts.first.random(rng));
    filled = match grouped.is_gated() {
        true => filled.bind(&experts.second.random(rng)),
        false => filled.bind::<u8>(&[]),
    };
    for len in [experts.bias_len(), experts.scale_len()] {
        let bytes = size_of::<f32>() * len;
        filled = bind(filled, bytes, rng);
        filled = bind(filled, grouped.of_up(bytes), rng);
    }
    filled.bind(&vec![f32::NAN; (experts.n_results() * p.N) as usize])
}

/// A corner of a tile; two tiles of one expert, of two weights and of one; experts without results, tails of outputs and inputs,
/// other rows between experts.
const SHAPES: [GroupedShape; 4] = [
    (([2, 1, 2], [3, 70], 0, 0, 0), false, Spread::Any),
    (([37, 1, 4], [33, 96], 0, HAS_BIASES, 3), true, Spread::One),
    (
        ([9, 3, 37], [17, 256], 9, HAS_SCALES, 1),
        true,
        Spread::Some,
    ),
    (
        ([25, 2, 5], [65, 64], 9, HAS_BIASES | HAS_SCALES, 2),
        false,
        Spread::Any,
    ),
];

/// Formats whose shapes are drawn too.
const DRAWN: [DType; 2] = [DType::F32, DType::Q4_0];

/// Shapes drawn from a seed: many experts have small matrices.
fn drawn() -> Vec<GroupedShape> {
    let mut rng = Rng::new(46);
    let mut draw = |_| {
        let range = [15, 63, 511][rng.below(3) as usize];
        let n_experts = 2 + rng.below(range);
        let n_used = 1 + rng.below(n_experts.min(16));
        let n_rows = 1 + rng.below(80 / n_used + 5);
        let most = if n_experts > 64 { 12 } else { 90 };
        let n_k = [1 + rng.below(most), 1 + rng.below(2 * most)];
        let spread = [Spread::Any, Spread::Some, Spread::One][rng.below(3) as usize];
        let shape = (
            [n_rows, n_used, n_experts],
            n_k,
            rng.below(4),
            rng.below(4),
            rng.below(5),
        );
        (shape, rng.below(2) == 0, spread)
    };
    (0..10).map(&mut draw).collect()
}

/// The sums of products in another order.
const NMSE: f64 = 1e-10;

pub fn all(dtype: Option<DType>, tile: u32) -> Vec<Case> {
    let Some(dtype) = dtype else {
        return Vec::new();
    };
    let drawn = if DRAWN.contains(&dtype) {
        drawn()
    } else {
        Vec::new()
    };
    let shapes = SHAPES.into_iter().chain(drawn).enumerate();
    shapes
        .map(|(at, shape)| {
            let (params, mut rng) = grouped_params(dtype, at, shape, tile);
            let row = row(dtype);
            let empty = Case::new(format!("{shape:?}"), &params, NMSE);
            let args = row.args(bytemuck::bytes_of(&params), &empty.constants);
            let bytes = Buffers::bytes(&args);
            let x = rng.floats(bytes.x / size_of::<f32>(), x_size(&params));
            bind_rest(
                empty.clone().bind(&x),
                &Grouped::of(&args),
                shape.2,
                &mut rng,
            )
        })
        .collect()
}
