//! `gemv_<format>_head_rmsnorm`: `q = weight @ x`, then each head of q by itself:
//! `y[h][i] = q[h][i] / sqrt(mean(q[h]²) + eps) * norm[i]`.
//!
//! One threadgroup a head.

use akunu_types::params::GEMVHeadNormParams;
use akunu_types::{DType, SharedStruct};

use crate::case::{Case, Rng};
use crate::chip::{ChipConfig, SIMD_WIDTH};
use crate::constant::{Constant, Constants};
use crate::extent::{bytes, product};
use crate::kernel::matmul::product::{Product, constants};
use crate::kernel::norm::rmsnorm::rmsnorm;
use crate::table::{Args, Binding, Element, Family, KernelRow, Launch, read, write};
use crate::twin::Twin;
use crate::weight::{Matrix, mlx_params};

const SIMD_GROUPS: u32 = 8;

const BINDINGS: &[Binding] = &[
    read(0, "x", Element::F32),
    read(1, "weight", Element::Weight),
    read(2, "norm", Element::F32),
    write(3, "y", Element::F32),
];

/// The row of the kernel table.
pub fn row(dtype: DType) -> KernelRow {
    KernelRow {
        name: ("gemv_", "_head_rmsnorm"),
        dtype: Some(dtype),
        family: Family::Fused,
        source: "gemv_head_rmsnorm",
        bindings: BINDINGS,
        params_index: 4,
        params: GEMVHeadNormParams::LAYOUT,
        constants: constants(dtype),
        launch,
        required,
        work: |args, once| once.with_flops(Product::single(matrix(args)).flops()),
        twin,
        cases,
    }
}

fn launch(args: &Args, _: &ChipConfig) -> Launch {
    let p: GEMVHeadNormParams = args.params();
    Launch::new([p.n_heads, 1, 1], [SIMD_GROUPS * SIMD_WIDTH, 1, 1])
}

fn matrix(args: &Args) -> Matrix {
    let p: GEMVHeadNormParams = args.params();
    let k = args.constants.u32(Constant::GemmK).unwrap_or(p.K);
    Matrix::of(args, p.N, k.max(p.K), (p.group_size, p.weight_bytes))
}

fn required(args: &Args) -> Vec<usize> {
    let p: GEMVHeadNormParams = args.params();
    let weight = matrix(args);
    // The kernel goes by heads: N must say the same.
    let is_whole = product(&[p.n_heads, p.head_dim]) == weight.rows;
    vec![
        weight.cols.saturating_mul(4),
        if is_whole { weight.bytes() } else { usize::MAX },
        bytes::<f32>(&[p.head_dim]),
        bytes::<f32>(&[p.n_heads, p.head_dim]),
    ]
}

fn twin(t: &mut Twin) {
    let p: GEMVHeadNormParams = t.params();
    let product = Product::single(matrix(&t.args()));
    let (x, weight, norm) = (t.read::<f32>(0), t.read::<u8>(1), t.read::<f32>(2));
    let mut q = vec![0.0; p.N as usize];
    product.compute(x, weight, &mut q);
    let head_dim = (p.head_dim as usize).max(1);
    let heads = t.write::<f32>(3).chunks_exact_mut(head_dim);
    for (y, q) in heads.zip(q.chunks_exact(head_dim)) {
        rmsnorm(q, norm, p.eps, y);
    }
}

/// (heads, head_dim, K, scale): a head that is not a multiple of the 32 rows of a pass, and real ones.
const SHAPES: [(u32, u32, u32, f32); 4] = [
    (1, 5, 40, 1.0),
    (3, 64, 256, 100.0),
    (2, 80, 300, 1e-3),
    (1, 256, 64, 1.0),
];

fn cases(dtype: Option<DType>) -> Vec<Case> {
    let each = dtype.into_iter().flat_map(|dtype| {
        let groups = [32, 64, 128, 64];
        SHAPES.into_iter().zip(groups).map(move |s| (dtype, s))
    });
    each.map(|(dtype, (shape, group_size))| case(dtype, shape, group_size))
        .collect()
}

/// f32 sums in another order, as in the products; the norm only scales them.
fn case(dtype: DType, (n_heads, head_dim, k, scale): (u32, u32, u32, f32), group: u32) -> Case {
    let block = if dtype.is_mlx() {
        group
    } else {
        dtype.block_len() as u32
    };
    let (n, k) = (n_heads * head_dim, k.next_multiple_of(block));
    let params = GEMVHeadNormParams {
        N: n,
        K: k,
        head_dim,
        n_heads,
        eps: 1e-6,
        group_size: group,
        weight_bytes: if dtype.is_mlx() {
            mlx_params(dtype, n, k, group).weight_bytes
        } else {
            0
        },
        ..Default::default()
    };
    let special = Constants::none().with_u32(Constant::GemmK, k);
    let label = format!("heads {n_heads}, head_dim {head_dim}, K {k}, scale {scale}");
    let case = Case::new(label, &params, 1e-10);
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
    let x = rng.floats(k as usize, scale);
    case.bind(&x)
        .bind(&weight.random(&mut rng))
        .bind(&rng.floats(head_dim as usize, 1.0))
        .bind(&vec![f32::NAN; n as usize])
}
