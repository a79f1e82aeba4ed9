//! `gemv_<format>_kv_write`: `cache[h][pos % max_seq_len][i] = f16(Σ_k weight[h * head_dim + i][k] * x[k])`.
//!
//! The other slots of the cache stay as they are.

use akunu_types::params::GEMVKVParams;
use akunu_types::{DType, SharedStruct};
use half::f16;

use crate::case::{Case, Rng};
use crate::chip::ChipConfig;
use crate::constant::{Constant, Constants};
use crate::cost::{Traffic, Work};
use crate::extent::bytes;
use crate::kernel::matmul::product::{Product, constants};
use crate::kernel::matmul::{gemv_launch, gemv_simd_groups};
use crate::table::{Args, Binding, Element, Family, KernelRow, Launch, read, read_write};
use crate::twin::Twin;
use crate::weight::{Matrix, mlx_params};

/// Outputs of a SIMD group.
const ROWS: u32 = 4;

const BINDINGS: &[Binding] = &[
    read(0, "x", Element::F32),
    read(1, "weight", Element::Weight),
    read_write(2, "cache", Element::F16),
];

/// The row of the kernel table.
pub fn row(dtype: DType) -> KernelRow {
    KernelRow {
        name: ("gemv_", "_kv_write"),
        dtype: Some(dtype),
        family: Family::Fused,
        source: "gemv_kv_write",
        bindings: BINDINGS,
        params_index: 3,
        params: GEMVKVParams::LAYOUT,
        constants: constants(dtype),
        launch,
        required,
        work,
        twin,
        cases,
    }
}

fn launch(args: &Args, _: &ChipConfig) -> Launch {
    let p: GEMVKVParams = args.params();
    gemv_launch(p.N, ROWS, gemv_simd_groups(p.K), 1)
}

fn matrix(args: &Args) -> Matrix {
    let p: GEMVKVParams = args.params();
    let k = args.constants.u32(Constant::GemmK).unwrap_or(p.K);
    Matrix::of(args, p.N, k.max(p.K), (p.group_size, p.weight_bytes))
}

fn required(args: &Args) -> Vec<usize> {
    let p: GEMVKVParams = args.params();
    let weight = matrix(args);
    let n_heads = p.N.div_ceil(p.head_dim.max(1));
    vec![
        weight.cols.saturating_mul(4),
        weight.bytes(),
        bytes::<f16>(&[n_heads, p.max_seq_len.max(1), p.head_dim.max(1)]),
    ]
}

/// Of the cache one slot is written.
fn work(args: &Args, once: Work) -> Work {
    let product = Product::single(matrix(args));
    once.with(2, Traffic::written(bytes::<f16>(&[product.n])))
        .with_flops(product.flops())
}

fn twin(t: &mut Twin) {
    let p: GEMVKVParams = t.params();
    let product = Product::single(matrix(&t.args()));
    let (x, weight) = (t.read::<f32>(0), t.read::<u8>(1));
    let mut row = vec![0.0; p.N as usize];
    product.compute(x, weight, &mut row);
    let (head_dim, slots) = (p.head_dim.max(1) as usize, p.max_seq_len.max(1) as usize);
    let slot = p.pos as usize % slots;
    let cache = t.write::<f16>(2);
    for (n, value) in row.into_iter().enumerate() {
        let (head, i) = (n / head_dim, n % head_dim);
        cache[(head * slots + slot) * head_dim + i] = f16::from_f32(value);
    }
}

/// (heads, head_dim, K, slots, pos): the first and the last slot, and a position beyond the ring.
const SHAPES: [(u32, u32, u32, u32, u32); 4] = [
    (1, 64, 40, 1, 0),
    (3, 64, 256, 5, 4),
    (2, 80, 300, 4, 9),
    (1, 37, 2100, 3, 1),
];

fn cases(dtype: Option<DType>) -> Vec<Case> {
    let each = dtype.into_iter().flat_map(|dtype| {
        let groups = [32, 64, 128, 64];
        SHAPES.into_iter().zip(groups).map(move |s| (dtype, s))
    });
    each.map(|(dtype, (shape, group_size))| case(dtype, shape, group_size))
        .collect()
}

/// f32 sums in another order, then rounded to f16, now and then to the other side: an error of 2⁻¹¹ in
/// one of the 37 values of the smallest case is 6e-9, and a few of them may be.
fn case(dtype: DType, shape: (u32, u32, u32, u32, u32), group: u32) -> Case {
    let (n_heads, head_dim, k, max_seq_len, pos) = shape;
    let block = if dtype.is_mlx() {
        group
    } else {
        dtype.block_len() as u32
    };
    let (n, k) = (n_heads * head_dim, k.next_multiple_of(block));
    let params = GEMVKVParams {
        N: n,
        K: k,
        head_dim,
        max_seq_len,
        pos,
        group_size: group,
        weight_bytes: if dtype.is_mlx() {
            mlx_params(dtype, n, k, group).weight_bytes
        } else {
            0
        },
        ..Default::default()
    };
    let special = Constants::none().with_u32(Constant::GemmK, k);
    let label = format!("heads {n_heads}, head_dim {head_dim}, K {k}, slot {pos} % {max_seq_len}");
    let case = Case::new(label, &params, 1e-7);
    let case = if head_dim == 80 {
        case.constants(special)
    } else {
        case
    };
    let weight = matrix(&Args {
        dtype: Some(dtype),
        params: case.params.as_bytes(),
        constants: &case.constants,
    });
    let mut rng = Rng::new(u64::from(n + k));
    case.bind(&rng.floats(k as usize, 1.0))
        .bind(&weight.random(&mut rng))
        .bind(&rng.halves((n * max_seq_len) as usize, 1.0))
}
