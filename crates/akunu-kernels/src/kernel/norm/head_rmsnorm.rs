//! `head_rmsnorm_f32`: `x[t][h] = x[t][h] / sqrt(mean(x[t][h]²) + eps) * weight`, in place.
//!
//! The QK norm of Qwen 3 and Gemma 3. One SIMD group a head of `head_dim` elements.

use akunu_types::SharedStruct;
use akunu_types::params::HeadNormParams;

use super::NMSE;
use super::rmsnorm::rmsnorm;
use crate::case::{Case, Rng};
use crate::chip::{ChipConfig, SIMD_WIDTH};
use crate::cost::once;
use crate::extent::{bytes, count};
use crate::table::{Args, Element, Family, KernelRow, Launch, read, read_write};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("head_rmsnorm_f32", ""),
    dtype: None,
    family: Family::Norm,
    source: "head_rmsnorm",
    bindings: &[
        read_write(0, "x", Element::F32),
        read(1, "weight", Element::F32),
    ],
    params_index: 2,
    params: HeadNormParams::LAYOUT,
    constants: &[],
    launch,
    required,
    work: once,
    twin,
    cases: |_| cases(),
};

/// Heads of a threadgroup.
const HEADS: u32 = 4;

fn launch(args: &Args, _: &ChipConfig) -> Launch {
    let p: HeadNormParams = args.params();
    // An empty head has no mean: no grid, which the plan check refuses.
    let n_heads = count(&[p.seq_len, p.n_heads, p.head_dim.min(1)]);
    Launch::new([n_heads.div_ceil(HEADS), 1, 1], [HEADS * SIMD_WIDTH, 1, 1])
}

fn required(args: &Args) -> Vec<usize> {
    let p: HeadNormParams = args.params();
    vec![
        bytes::<f32>(&[p.seq_len, p.n_heads, p.head_dim]),
        bytes::<f32>(&[p.head_dim]),
    ]
}

fn twin(t: &mut Twin) {
    let p: HeadNormParams = t.params();
    let weight = t.read::<f32>(1);
    for head in t.write::<f32>(0).chunks_exact_mut(p.head_dim as usize) {
        let x = head.to_vec();
        rmsnorm(&x, weight, p.eps, head);
    }
}

fn cases() -> Vec<Case> {
    // head_dim, heads, tokens, scale: the head sizes of models and one that is odd; a threadgroup
    // that is full, and one with idle SIMD groups.
    let shapes: [(u32, u32, u32, f32); 6] = [
        (64, 9, 1, 1.0),
        (80, 3, 3, 1e-4),
        (96, 4, 2, 1e4),
        (128, 1, 1, 1.0),
        (256, 4, 1, 30.0),
        (33, 5, 1, 1.0),
    ];
    shapes.into_iter().map(case).collect()
}

fn case((head_dim, n_heads, seq_len, scale): (u32, u32, u32, f32)) -> Case {
    let mut rng = Rng::new(u64::from(head_dim));
    let n = (head_dim * n_heads * seq_len) as usize;
    let params = HeadNormParams {
        head_dim,
        n_heads,
        seq_len,
        eps: 1e-6,
        ..Default::default()
    };
    let label = format!("head_dim {head_dim}, heads {n_heads}, tokens {seq_len}, scale {scale}");
    Case::new(label, &params, NMSE)
        .bind(&rng.floats(n, scale))
        .bind(&rng.floats(head_dim as usize, 1.0))
}
