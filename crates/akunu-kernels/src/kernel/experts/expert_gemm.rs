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

#[cfg(feature = "testing")]
pub(crate) mod cases;

use akunu_types::DType;
use akunu_types::params::ExpertParams;

use super::products::{Experts, constants, dot, gate};
use super::sort_experts::{TILE_WORDS, n_tiles};
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
        #[cfg(feature = "testing")]
        cases: |dtype| cases::all(dtype, TILE),
        ..KernelRow::of::<Buffers<()>>()
    }
}

/// The row of the kernel table.
pub fn small_row(dtype: DType) -> KernelRow {
    KernelRow {
        name: ("expert_gemm_small_", ""),
        source: "expert_gemm_small",
        #[cfg(feature = "testing")]
        cases: |dtype| cases::all(dtype, SMALL_TILE),
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
