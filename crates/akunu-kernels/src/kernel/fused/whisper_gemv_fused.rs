//! `whisper_gemv_fused_f16`:
//! `y[m][n] = act(alpha * Σ_k weight[n][k] * x[m][k] + bias[n]) + beta * y[m][n]`.
//!
//! A linear layer of Whisper's decoder in one dispatch; act is the exact GELU where `FC_GELU` is set.
//! A SIMD group computes four outputs.

use akunu_types::SharedStruct;
use akunu_types::params::GEMMParams;
use half::f16;

use crate::case::{Case, Rng};
use crate::chip::{ChipConfig, SIMD_WIDTH};
use crate::constant::{Constant, Constants};
use crate::cost::{Traffic, Work, multiply_adds};
use crate::extent::bytes;
use crate::kernel::activation::gelu_erf;
use crate::table::{Args, Element, Family, KernelRow, Launch, read, read_write};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("whisper_gemv_fused_f16", ""),
    dtype: None,
    family: Family::Fused,
    source: "whisper_gemv_fused",
    bindings: &[
        read(0, "x", Element::F32),
        read(1, "weight", Element::F16),
        read(2, "bias", Element::F32),
        read_write(3, "y", Element::F32),
    ],
    params_index: 4,
    params: GEMMParams::LAYOUT,
    constants: &[Constant::Gelu],
    launch,
    required,
    work,
    twin,
    cases: |_| cases(),
};

/// Outputs of a SIMD group.
const ROWS: u32 = 4;
/// SIMD groups of a threadgroup.
const SIMD_GROUPS: u32 = 4;

fn launch(args: &Args, _: &ChipConfig) -> Launch {
    let p: GEMMParams = args.params();
    let grid = [p.N.div_ceil(ROWS * SIMD_GROUPS), p.M, 1];
    Launch::new(grid, [SIMD_GROUPS * SIMD_WIDTH, 1, 1])
}

fn required(args: &Args) -> Vec<usize> {
    let p: GEMMParams = args.params();
    vec![
        strided::<f32>(p.M, p.lda, p.K),
        strided::<f16>(p.N, p.ldb, p.K),
        bytes::<f32>(&[p.N]),
        strided::<f32>(p.M, p.ldc, p.N),
    ]
}

/// The weights are read once for each m.
fn work(args: &Args, once: Work) -> Work {
    let p: GEMMParams = args.params();
    let weight = bytes::<f16>(&[p.M, p.N, p.K]);
    let y = bytes::<f32>(&[p.M, p.N]);
    let y = match p.beta {
        0.0 => Traffic::written(y),
        _ => Traffic::both(y),
    };
    once.with(1, Traffic::read(weight))
        .with(3, y)
        .with_flops(multiply_adds(&[p.M, p.N, p.K]))
}

/// Bytes of rows of `cols` elements that are `stride` apart.
fn strided<T>(rows: u32, stride: u32, cols: u32) -> usize {
    bytes::<T>(&[rows.saturating_sub(1), stride]).saturating_add(bytes::<T>(&[cols]))
}

fn twin(t: &mut Twin) {
    let p: GEMMParams = t.params();
    let gelu = t.constants().bool(Constant::Gelu);
    let (x, weight, bias) = (t.read::<f32>(0), t.read::<f16>(1), t.read::<f32>(2));
    let k = p.K as usize;
    let y = t.write::<f32>(3);
    for m in 0..p.M as usize {
        let x = &x[m * p.lda as usize..][..k];
        for n in 0..p.N as usize {
            let weight = &weight[n * p.ldb as usize..][..k];
            let product: f32 = weight.iter().zip(x).map(|(w, x)| w.to_f32() * x).sum();
            let sum = p.alpha * product + bias[n];
            let y = &mut y[m * p.ldc as usize + n];
            let residual = if p.beta == 0.0 { 0.0 } else { p.beta * *y };
            *y = residual + if gelu { gelu_erf(sum) } else { sum };
        }
    }
}

fn cases() -> Vec<Case> {
    let gelu = || Constants::none().with_bool(Constant::Gelu, true);
    let off = Constants::none().with_bool(Constant::Gelu, false);
    // [M, N, K, padding of the rows of x and y]
    vec![
        case("one of everything", [1, 1, 1, 0], 0.0, Constants::none()),
        case("a layer with GELU", [1, 48, 384, 0], 0.0, gelu()),
        case("a layer with the residual", [1, 33, 130, 0], 1.0, off),
        case("several rows, apart", [3, 18, 67, 5], 1.0, gelu()),
    ]
}

/// f32 sums of at most 384 products in another order, about 1e-6 relative, and erf within 5e-7. What
/// y holds must not matter where beta is 0: it holds NaN.
fn case(label: &str, [m, n, k, gap]: [u32; 4], beta: f32, constants: Constants) -> Case {
    let params = GEMMParams {
        M: m,
        N: n,
        K: k,
        lda: k + gap,
        ldb: k + gap,
        ldc: n + gap,
        alpha: 0.75,
        beta,
    };
    let mut rng = Rng::new(u64::from(k));
    let n_outputs = (m * params.ldc) as usize;
    let y = match beta {
        0.0 => vec![f32::NAN; n_outputs],
        _ => rng.floats(n_outputs, 1.0),
    };
    Case::new(label, &params, 1e-11)
        .constants(constants)
        .bind(&rng.floats((m * params.lda) as usize, 1.0))
        .bind(&rng.halves((n * params.ldb) as usize, 0.2))
        .bind(&rng.floats(n as usize, 1.0))
        .bind(&y)
}
