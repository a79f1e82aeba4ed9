//! `expert_gemm_<format>` and `expert_gemm_small_<format>`: products of all rows with the matrices of the experts that they use,
//! those of one expert together.
//!
//! ```text
//! y[r][i] = gate(Wgate[e] x[r], Wup[e] x[r])   of two weights: expert_gate
//! y[r][i] = W[e] x[r][i]                       of one: expert_down;   e = the expert of result i of row r
//! ```
//!
//! The results have been [sorted](super::sort_experts): a threadgroup computes a tile of them, all of one expert, whose weights it reads
//! once. A tile has 32 results, or 8 where an expert has few. What they are computed from is gathered and they are scattered again,
//! so that they lie as those of [`expert_gate`](super::expert_gate) and [`expert_down`](super::expert_down) do, and are summed up in
//! the same order.

use akunu_types::DType;
use akunu_types::params::{ExpertParams, SortExpertsParams};

use super::products::{
    Experts, HAS_BIASES, HAS_SCALES, Shape, bind, case_of, constants, dot, gate,
};
use super::sort_experts::{TILE_WORDS, n_tiles, sort};
use crate::case::{Case, Rng};
use crate::cost::{Traffic, Work, multiply_adds};
use crate::table::{Args, Family, KernelRow, Launch, Weight, buffers};
use crate::twin::Twin;

/// Results of a tile.
pub const TILE: u32 = 32;
/// Results of a small tile.
pub const SMALL_TILE: u32 = 8;
/// Weight rows of a threadgroup, of both weights together.
const TILE_N: u32 = 64;
const THREADS: u32 = 128;

buffers! {
    pub struct Buffers, Slices(|args| grouped = Grouped::of(args), ExpertParams at 10) {
        x: read f32 = [grouped.x_rows(), grouped.experts.params.K],
        order: read u32 = [grouped.experts.n_results()],
        tiles: read u32 = [grouped.n_tiles(), TILE_WORDS],
        weight: read Weight = grouped.experts.weight_bytes(&grouped.experts.first),
        up: read Weight = grouped.of_up(grouped.experts.weight_bytes(&grouped.experts.second)),
        bias: read f32 = grouped.experts.bias_len(),
        up_bias: read f32 = grouped.of_up(grouped.experts.bias_len()),
        scale: read f32 = grouped.experts.scale_len(),
        up_scale: read f32 = grouped.of_up(grouped.experts.scale_len()),
        y: write f32 = [grouped.experts.n_results(), grouped.experts.params.N],
    }
}

/// Products whose results are sorted.
#[derive(Clone, Copy, Debug)]
pub struct Grouped {
    /// The matrices.
    pub experts: Experts,
}

impl Grouped {
    /// Reads the params.
    pub fn of(args: &Args) -> Grouped {
        Grouped {
            experts: Experts::of(args),
        }
    }

    fn is_gated(&self) -> bool {
        self.experts.params.is_gated != 0
    }

    /// What there is of a second weight, if there is one.
    pub fn of_up(&self, of_up: usize) -> usize {
        if self.is_gated() { of_up } else { 0 }
    }

    /// Rows of x: those of the step before a gate, else one for each result.
    pub fn x_rows(&self) -> u32 {
        match self.is_gated() {
            true => self.experts.params.n_rows,
            false => self.experts.n_results(),
        }
    }

    /// Tiles, some of which have no results.
    pub fn n_tiles(&self) -> u32 {
        let p = &self.experts.params;
        n_tiles(self.experts.n_results(), p.n_experts, p.tile)
    }

    /// The launch of threadgroups of `threads` threads that have `tile_n` rows of weights.
    pub fn launch(&self, tile_n: u32, threads: u32) -> Launch {
        let n_outputs = if self.is_gated() { tile_n / 2 } else { tile_n };
        let n_columns = self.experts.params.N.div_ceil(n_outputs);
        Launch::new([self.n_tiles(), n_columns, 1], [threads, 1, 1])
    }

    /// What a launch does: each tile reads the matrices of its expert; those without results read none.
    pub fn work(&self, once: Work, [weight, up]: [usize; 2]) -> Work {
        let p = &self.experts.params;
        let n_results = self.experts.n_results();
        let n_full = n_results / p.tile.max(1) + n_results.min(p.n_experts);
        let read = |bytes: usize| Traffic::read(bytes.saturating_mul(n_full as usize));
        let (first, second) = (&self.experts.first, &self.experts.second);
        let of_expert = |row_bytes: usize| row_bytes * p.N as usize;
        let n_weights = if self.is_gated() { 2 } else { 1 };
        once.with(weight, read(of_expert(first.row_bytes())))
            .with(up, read(self.of_up(of_expert(second.row_bytes()))))
            .with_flops(multiply_adds(&[n_weights, n_results, p.N, p.K]))
    }

    /// The twin: `x` has the values of a row.
    pub fn compute(&self, b: &mut Results, x: impl Fn(usize) -> Vec<f32>) {
        let experts = &self.experts;
        let p = &experts.params;
        let act = gate(p.activation);
        for tile in b.tiles.chunks_exact(TILE_WORDS as usize) {
            let expert = tile[0].min(p.n_experts - 1) as usize;
            let results = b.order.iter().skip(tile[1] as usize);
            for &result in results.take(tile[2].min(p.tile) as usize) {
                let result = result as usize;
                let x = x(if self.is_gated() {
                    result / p.n_used as usize
                } else {
                    result
                });
                let y = &mut b.y[result * p.N as usize..][..p.N as usize];
                for (n, y) in y.iter_mut().enumerate() {
                    let row = experts.row(expert, n);
                    let product = dot(&experts.first, b.weight, row, &x);
                    *y = experts.finished(product, [expert, n], b.bias, b.scale);
                    if self.is_gated() {
                        let up = dot(&experts.second, b.up, row, &x);
                        *y = act(*y, experts.finished(up, [expert, n], b.up_bias, b.up_scale));
                    }
                }
            }
        }
    }
}

/// What the twins of grouped products have besides x.
pub struct Results<'a> {
    /// The results of all experts, one expert's after another's.
    pub order: &'a [u32],
    /// Their tiles.
    pub tiles: &'a [u32],
    /// The first weight and the second.
    pub weight: &'a [u8],
    /// The second weight.
    pub up: &'a [u8],
    /// Biases of the first weight.
    pub bias: &'a [f32],
    /// Those of the second.
    pub up_bias: &'a [f32],
    /// Scales of the first weight.
    pub scale: &'a [f32],
    /// Those of the second.
    pub up_scale: &'a [f32],
    /// The results.
    pub y: &'a mut [f32],
}

/// The row of the kernel table.
pub fn row(dtype: DType) -> KernelRow {
    KernelRow {
        name: ("expert_gemm_", ""),
        dtype: Some(dtype),
        family: Family::Experts,
        source: "expert_gemm",
        constants: constants(dtype),
        launch: |args, _| Grouped::of(args).launch(TILE_N, THREADS),
        work: |args, once| {
            Grouped::of(args).work(once, [Buffers::PLACES.weight, Buffers::PLACES.up])
        },
        twin,
        cases: |dtype| cases(dtype, TILE),
        ..KernelRow::of::<Buffers<()>>()
    }
}

/// The row of the kernel table.
pub fn small_row(dtype: DType) -> KernelRow {
    KernelRow {
        name: ("expert_gemm_small_", ""),
        source: "expert_gemm_small",
        cases: |dtype| cases(dtype, SMALL_TILE),
        ..row(dtype)
    }
}

fn twin(t: &mut Twin) {
    let grouped = Grouped::of(&t.args());
    let b = Slices::of(t);
    let k = grouped.experts.params.K as usize;
    let mut results = Results {
        order: b.order,
        tiles: b.tiles,
        weight: b.weight,
        up: b.up,
        bias: b.bias,
        up_bias: b.up_bias,
        scale: b.scale,
        up_scale: b.up_scale,
        y: b.y,
    };
    grouped.compute(&mut results, |row| b.x[row * k..][..k].to_vec());
}

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

fn cases(dtype: Option<DType>, tile: u32) -> Vec<Case> {
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
