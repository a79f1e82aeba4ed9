//! `tensor_experts_<format>` and `tensor_experts_small_<format>`: grouped products of experts
//! ([`expert_gemm`]) on tensor cores.
//!
//! x is in halves with a factor for each row ([`half_rows`](crate::kernel::convert::half_rows)); its rows are `lda` halves apart and
//! hold zeros behind K, up to a multiple of 64. Weights are rounded to halves, sums are floats.
//!
//! | kernel | tile | |
//! |---|---|---|
//! | `tensor_experts` | 64 × 128 | prompts |
//! | `tensor_experts_small` | 16 × 64 | experts of few rows each; two teams split K |
//!
//! Of two weights, gate and up, a tile has half as many outputs of each.

use akunu_types::DType;
use akunu_types::params::ExpertParams;
use half::f16;

use super::tensor_gemm::STEP;
use crate::extent::strided;
use crate::kernel::experts::expert_gemm::{self, Grouped, Results};
use crate::kernel::experts::sort_experts::TILE_WORDS;
use crate::table::{Args, Family, KernelRow, Launch, Weight, buffers};
use crate::twin::Twin;

/// Results of a tile.
pub const TILE: u32 = 64;
/// Results of a small tile.
pub const SMALL_TILE: u32 = 16;

/// Weight rows of the tiles, and threads of a threadgroup.
const TILE_N: u32 = 128;
const SMALL_TILE_N: u32 = 64;
const THREADS: u32 = 256;

buffers! {
    pub struct Buffers, Slices(|args| grouped = Grouped::of(args), ExpertParams at 10) {
        x: read f16 = x_len(&grouped),
        order: read u32 = [grouped.experts.n_results()],
        tiles: read u32 = [grouped.n_tiles(), TILE_WORDS],
        weight: read Weight = grouped.experts.weight_bytes(&grouped.experts.first),
        up: read Weight = grouped.of_up(grouped.experts.weight_bytes(&grouped.experts.second)),
        bias: read f32 = grouped.experts.bias_len(),
        up_bias: read f32 = grouped.of_up(grouped.experts.bias_len()),
        scale: read f32 = grouped.experts.scale_len(),
        up_scale: read f32 = grouped.of_up(grouped.experts.scale_len()),
        y: write f32 = [grouped.experts.n_results(), grouped.experts.params.N],
        factor: read f32 = [grouped.x_rows()],
    }
}

fn x_len(grouped: &Grouped) -> usize {
    let p = &grouped.experts.params;
    strided(grouped.x_rows(), p.lda, p.K.next_multiple_of(STEP))
}

/// The row of the kernel table.
pub fn row(dtype: DType) -> KernelRow {
    KernelRow {
        family: Family::Nvidia,
        name: ("tensor_experts_", ""),
        source: "tensor_experts",
        launch: |args, _| launch(args, TILE_N),
        work: |args, once| {
            Grouped::of(args).work(once, [Buffers::PLACES.weight, Buffers::PLACES.up])
        },
        twin,
        #[cfg(feature = "testing")]
        cases: |dtype| cases::all(dtype, TILE),
        dtype: Some(dtype),
        constants: expert_gemm::row(dtype).constants,
        ..KernelRow::of::<Buffers<()>>()
    }
}

/// The row of the kernel table.
pub fn small_row(dtype: DType) -> KernelRow {
    KernelRow {
        name: ("tensor_experts_small_", ""),
        source: "tensor_experts_small",
        launch: |args, _| launch(args, SMALL_TILE_N),
        #[cfg(feature = "testing")]
        cases: |dtype| cases::all(dtype, SMALL_TILE),
        ..row(dtype)
    }
}

/// Rows of x that are not whole vectors of 8 get an empty grid, which the plan check refuses.
fn launch(args: &Args, tile_n: u32) -> Launch {
    let grouped = Grouped::of(args);
    match grouped.experts.params.lda.is_multiple_of(8) {
        true => grouped.launch(tile_n, THREADS),
        false => Launch::new([0; 3], [THREADS, 1, 1]),
    }
}

fn twin(t: &mut Twin) {
    let grouped = Grouped::of(&t.args());
    let b = Slices::of(t);
    let p = grouped.experts.params;
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
    grouped.compute(&mut results, |row| {
        let halves = &b.x[row * p.lda as usize..][..p.K as usize];
        let values = halves.iter().map(|half| half.to_f32() * b.factor[row]);
        values.collect()
    });
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::Case;
    use crate::kernel::experts::expert_gemm::cases::{
        GroupedShape, Spread, bind_rest, grouped_params, x_size,
    };
    use crate::kernel::experts::{HAS_BIASES, HAS_SCALES};
    use crate::kernel::nvidia::tensor_gemm::cases::{NMSE, OF_EACH_KIND};

    /// Tails of outputs and of K, of two weights and more than a tile of one expert; of one weight and of experts without results.
    const SHAPES: [GroupedShape; 3] = [
        (([66, 1, 3], [67, 160], 0, HAS_BIASES, 3), true, Spread::One),
        (
            ([9, 3, 7], [130, 256], 9, HAS_SCALES, 1),
            false,
            Spread::Some,
        ),
        (
            ([5, 2, 33], [9, 70], 9, HAS_BIASES | HAS_SCALES, 2),
            true,
            Spread::Any,
        ),
    ];

    /// As of [`tensor_gemm`](super::tensor_gemm), formats of each kind have all shapes.
    pub fn all(dtype: Option<DType>, tile: u32) -> Vec<Case> {
        let each = dtype.into_iter().flat_map(|dtype| {
            let is_whole = OF_EACH_KIND.contains(&dtype);
            let n_shapes = if is_whole { SHAPES.len() } else { 1 };
            let shapes = SHAPES.into_iter().enumerate().take(n_shapes);
            shapes.map(move |(at, shape)| case(dtype, at, shape, tile))
        });
        each.collect()
    }

    /// What must not be read is NaN: x behind its zeros.
    fn case(dtype: DType, at: usize, shape: GroupedShape, tile: u32) -> Case {
        let (params, mut rng) = grouped_params(dtype, at, shape, tile);
        let params = ExpertParams {
            lda: params.K.next_multiple_of(STEP) + 8 * (at as u32 % 2),
            ..params
        };
        let row = row(dtype);
        let empty = Case::new(format!("{shape:?}"), &params, NMSE);
        let args = row.args(bytemuck::bytes_of(&params), &empty.constants);
        let grouped = Grouped::of(&args);
        let mut x = rng.halves(x_len(&grouped), x_size(&params));
        for (at, x) in x.iter_mut().enumerate() {
            match at as u32 % params.lda {
                column if column >= params.K.next_multiple_of(STEP) => *x = f16::NAN,
                column if column >= params.K => *x = f16::ZERO,
                _ => {}
            }
        }
        let factors = rng.floats(grouped.x_rows() as usize, 1.0);
        bind_rest(empty.clone().bind(&x), &grouped, shape.2, &mut rng).bind(&factors)
    }
}
