//! `norm_gemv_<format>`: `y_i[n] = 1 / sqrt(mean(x²) + eps) * Σ_k weight_i[n][k] * gain[k] * x[k]`, for up to three weights.
//!
//! With [`Constant::Gate`]: `y_0[n] = act(product with weight_0) * (product with weight_1)`, and nothing else.
//!
//! A norm and the products that read it: queries, keys and values, or a gate and what it lets through. A threadgroup
//! computes four outputs of one weight, or two of a gate and the same two of what it lets through; of every n steps of 1024
//! values a SIMD group of n takes one, a span of 32 a lane. The squares of x are summed beside the products. x and gain
//! begin at multiples of 16 bytes, and K is a multiple of 4.

use akunu_program::MlxLayout;
use akunu_types::DType;
use akunu_types::params::NormGemvParams;

use crate::chip::{ChipConfig, SIMD_WIDTH};
use crate::constant::Constant;
use crate::cost::{Traffic, Work};
use crate::kernel::activation::{gelu, silu};
use crate::kernel::matmul::product::Product;
use crate::kernel::norm::rmsnorm::rmsnorm;
use crate::table::{Args, Family, KernelRow, Launch, Weight, buffers};
use crate::twin::Twin;
use crate::weight::WeightLayout;

/// Outputs of a threadgroup.
const ROWS: u32 = 4;
/// Values that a SIMD group takes in one step.
const STEP: u32 = 1024;
/// Most SIMD groups of a threadgroup: those whose x has room in threadgroup memory.
const MAX_SIMD_GROUPS: u32 = 4;
/// Where x must begin, in bytes.
pub const X_ALIGNMENT: usize = 16;

/// [`Constant::Gate`] of a gate through SiLU.
pub const SILU: u32 = 1;
/// [`Constant::Gate`] of a gate through the tanh form of GELU.
pub const GELU: u32 = 2;

buffers! {
    pub struct Buffers, Slices(|args| (p, matrices, results) = sizes(args), NormGemvParams at 8) {
        x: read f32 = [p.K],
        gain: read f32 = [p.K],
        weight_0: read Weight = weight_bytes(&matrices[0]),
        weight_1: read Weight = weight_bytes(&matrices[1]),
        weight_2: read Weight = weight_bytes(&matrices[2]),
        y_0: write f32 = [results[0]],
        y_1: write f32 = [results[1]],
        y_2: write f32 = [results[2]],
    }
}

/// The row of the kernel table.
pub fn row(dtype: DType) -> KernelRow {
    KernelRow {
        name: ("norm_gemv_", ""),
        dtype: Some(dtype),
        family: Family::Fused,
        source: "norm_gemv",
        constants: if dtype.mlx_bits().is_some() {
            &[Constant::GroupSize, Constant::ScaleType, Constant::Gate]
        } else {
            &[Constant::Gate]
        },
        launch,
        work,
        twin,
        #[cfg(feature = "testing")]
        cases: cases::all,
        ..KernelRow::of::<Buffers<()>>()
    }
}

/// Rows of each weight.
fn outputs(p: &NormGemvParams) -> [u32; 3] {
    [p.N0, p.N1, p.N2]
}

/// The function of a gate, by the value of [`Constant::Gate`].
fn activation(args: &Args) -> Option<fn(f32) -> f32> {
    match args.constants.u32(Constant::Gate) {
        Some(SILU) => Some(silu),
        Some(GELU) => Some(gelu),
        _ => None,
    }
}

/// Rows that threadgroups share: of each weight, or of a gate and what it lets through together. Those two must have as many
/// outputs: others get no rows and so an empty grid, which the plan check refuses.
pub fn shared_rows(args: &Args) -> [u32; 3] {
    let p: NormGemvParams = args.params();
    match activation(args) {
        None => outputs(&p),
        Some(_) if outputs(&p) == [p.N0, p.N0, 0] => [p.N0.saturating_mul(2), 0, 0],
        Some(_) => [0; 3],
    }
}

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: NormGemvParams = args.params();
    let groups = shared_rows(args).iter().map(|n| n.div_ceil(ROWS)).sum();
    let threads = simd_groups(p.K, groups, chip) * SIMD_WIDTH;
    Launch::new([groups, 1, 1], [threads, 1, 1])
}

/// SIMD groups of each of `groups` threadgroups, which share `k` values: as many as fill the chip, but none with less
/// than a step's work.
fn simd_groups(k: u32, groups: u32, chip: &ChipConfig) -> u32 {
    let filling = (chip.gpu_cores * chip.thresholds.product_simd_groups).div_ceil(groups.max(1));
    let working = k.div_ceil(STEP).min(MAX_SIMD_GROUPS);
    filling.min(working).max(1)
}

/// The weights, of which those without rows are not there.
fn matrices(args: &Args) -> [WeightLayout; 3] {
    let p: NormGemvParams = args.params();
    let grouped = MlxLayout::grouped(p.group_size, p.scale_type);
    let places = [
        [p.packed_0, p.scales_0, p.biases_0],
        [p.packed_1, p.scales_1, p.biases_1],
        [p.packed_2, p.scales_2, p.biases_2],
    ];
    let outputs = outputs(&p);
    std::array::from_fn(|i| WeightLayout::of(args, outputs[i], p.K, grouped.at(places[i])))
}

/// The params, the weights, and how many results there are of each.
fn sizes(args: &Args) -> (NormGemvParams, [WeightLayout; 3], [u32; 3]) {
    let p: NormGemvParams = args.params();
    let results = match activation(args) {
        Some(_) => [p.N0, 0, 0],
        None => outputs(&p),
    };
    (p, matrices(args), results)
}

fn weight_bytes(matrix: &WeightLayout) -> usize {
    match matrix.rows {
        0 => 0,
        _ => matrix.bytes(),
    }
}

fn work(args: &Args, once: Work) -> Work {
    let matrices = matrices(args);
    let flops = matrices.map(|matrix| Product::single(matrix).flops());
    let work = once.with_flops(flops.iter().sum());
    let Buffers {
        weight_0,
        weight_1,
        weight_2,
        ..
    } = Buffers::PLACES;
    let places = [weight_0, weight_1, weight_2].into_iter().zip(matrices);
    let there = places.filter(|(_, matrix)| matrix.rows > 0);
    there.fold(work, |work, (place, matrix)| {
        work.with(place, Traffic::read(matrix.read_bytes()))
    })
}

fn twin(t: &mut Twin) {
    let p: NormGemvParams = t.params();
    let matrices = matrices(&t.args());
    let activation = activation(&t.args());
    let b = Slices::of(t);
    let weights = [b.weight_0, b.weight_1, b.weight_2];
    let mut normed = vec![0.0; b.x.len()];
    rmsnorm(b.x, b.gain, p.eps, &mut normed);
    if let Some(activation) = activation {
        let products = [0, 1].map(|at: usize| {
            let mut y = vec![0.0; p.N0 as usize];
            Product::single(matrices[at]).compute(&normed, weights[at], &mut y);
            y
        });
        for (n, y) in b.y_0.iter_mut().enumerate() {
            *y = activation(products[0][n]) * products[1][n];
        }
        return;
    }
    let products = matrices.into_iter().zip(weights).zip([b.y_0, b.y_1, b.y_2]);
    for ((matrix, weight), y) in products.filter(|((matrix, _), _)| matrix.rows > 0) {
        Product::single(matrix).compute(&normed, weight, y);
    }
}

/// The same with the places of the three weights, whose groups and scales are alike.
pub(crate) fn with_layouts(
    params: NormGemvParams,
    [zero, one, two]: [MlxLayout; 3],
) -> NormGemvParams {
    NormGemvParams {
        group_size: zero.group_size,
        scale_type: zero.scale_type.code(),
        packed_0: zero.packed_at,
        scales_0: zero.scales_at,
        biases_0: zero.biases_at,
        packed_1: one.packed_at,
        scales_1: one.scales_at,
        biases_1: one.biases_at,
        packed_2: two.packed_at,
        scales_2: two.scales_at,
        biases_2: two.biases_at,
        ..params
    }
}

#[cfg(feature = "testing")]
pub(crate) mod cases {
    use super::*;
    use crate::case::{Case, Rng};
    use crate::constant::Constants;
    use crate::weight::{any_scale_type, case_block, mlx_constants, scattered};

    /// (outputs of each weight, K, gate): less and more than a threadgroup's, none of the last, K with a tail and of several
    /// shares.
    const SHAPES: [([u32; 3], u32, u32); 6] = [
        ([1, 5, 3], 4, 0),
        ([9, 2, 0], 300, 0),
        ([4, 4, 4], 576, 0),
        ([6, 1, 7], 2312, 0),
        ([7, 7, 0], 300, SILU),
        ([9, 9, 0], 2312, GELU),
    ];

    /// Cases of each shape.
    pub fn all(dtype: Option<DType>) -> Vec<Case> {
        of(dtype, &SHAPES)
    }

    /// Outputs of each weight, K and the activation of a gate (0: none).
    pub type NormShape = ([u32; 3], u32, u32);

    /// A case for each shape.
    pub fn of(dtype: Option<DType>, shapes: &[NormShape]) -> Vec<Case> {
        let groups = [32, 64, 128, 64, 32, 128].into_iter().cycle();
        let each = dtype
            .into_iter()
            .flat_map(|dtype| shapes.iter().map(move |shape| (dtype, *shape)));
        each.zip(groups)
            .map(|((dtype, shape), group)| case(dtype, shape, group))
            .collect()
    }

    /// MLX: the same with a group size, and places of the three weights.
    fn placed(params: NormGemvParams, dtype: DType, group_size: u32) -> NormGemvParams {
        let scale_type = any_scale_type(params.N0 + params.K / 32);
        let layouts =
            outputs(&params).map(|rows| scattered(dtype, [rows, params.K], group_size, scale_type));
        with_layouts(params, layouts)
    }

    /// f32 sums in another order, and the root's factor after the sum instead of before it: measured at 3e-11 or less, and at
    /// 1e-10 where a weight has a single output, whose sum may nearly cancel. A wrong nibble or row is above 1e-3.
    fn case(dtype: DType, (outputs, k, gate): NormShape, group: u32) -> Case {
        let block = case_block(dtype, group);
        let k = k.next_multiple_of(block);
        let [n0, n1, n2] = outputs;
        let params = NormGemvParams {
            K: k,
            N0: n0,
            N1: n1,
            N2: n2,
            eps: 1e-5,
            ..Default::default()
        };
        let params = if dtype.mlx_bits().is_some() {
            placed(params, dtype, group)
        } else {
            params
        };
        let label = format!("outputs {n0} + {n1} + {n2}, K {k}, gate {gate}");
        let mut constants = Constants::none();
        if dtype.mlx_bits().is_some() && k == 2 * group {
            constants = mlx_constants(&MlxLayout::grouped(group, params.scale_type));
        }
        if gate != 0 {
            constants = constants.with_u32(Constant::Gate, gate);
        }
        let mut case = Case::new(label, &params, 1e-9).constants(constants);
        let weights = matrices(&Args {
            dtype: Some(dtype),
            params: case.params.as_bytes(),
            constants: &case.constants,
        });
        let mut rng = Rng::new(u64::from(n0 + n1 + k));
        case = case
            .bind(&rng.floats(k as usize, 3.0))
            .bind(&rng.floats(k as usize, 1.0));
        for weight in &weights {
            case = case.bind(&match weight.rows {
                0 => Vec::new(),
                _ => weight.random(&mut rng),
            });
        }
        let n_results = if gate != 0 { [n0, 0, 0] } else { outputs };
        for n in n_results {
            case = case.bind(&vec![f32::NAN; n as usize]);
        }
        case
    }
}
