//! `qkv_split_f32`: each row `[q | k | v]` of the fused projection goes to three matrices.

use akunu_types::SharedStruct;
use akunu_types::params::QKVSplitParams;

use super::launch_matrix;
use crate::case::{Case, Rng};
use crate::chip::ChipConfig;
use crate::cost::once;
use crate::extent::bytes;
use crate::table::{Args, Element, Family, KernelRow, Launch, read, write};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("qkv_split_f32", ""),
    dtype: None,
    family: Family::Common,
    source: "qkv_split",
    bindings: &[
        read(0, "qkv", Element::F32),
        write(1, "q", Element::F32),
        write(2, "k", Element::F32),
        write(3, "v", Element::F32),
    ],
    params_index: 4,
    params: QKVSplitParams::LAYOUT,
    constants: &[],
    launch,
    required,
    work: once,
    twin,
    cases: |_| cases(),
};

/// Elements of a fused row. Too many for 32 bits give an empty grid, which the plan check refuses.
fn row_len(p: &QKVSplitParams) -> u32 {
    let kv = p.kv_dim.checked_mul(2);
    kv.and_then(|kv| kv.checked_add(p.q_dim)).unwrap_or(0)
}

fn launch(args: &Args, _: &ChipConfig) -> Launch {
    let p: QKVSplitParams = args.params();
    launch_matrix(p.seq_len, row_len(&p))
}

fn required(args: &Args) -> Vec<usize> {
    let p: QKVSplitParams = args.params();
    let q = bytes::<f32>(&[p.seq_len, p.q_dim]);
    let kv = bytes::<f32>(&[p.seq_len, p.kv_dim]);
    vec![q.saturating_add(kv).saturating_add(kv), q, kv, kv]
}

fn twin(t: &mut Twin) {
    let p: QKVSplitParams = t.params();
    let qkv = t.read::<f32>(0);
    let (q_dim, kv_dim) = (p.q_dim as usize, p.kv_dim as usize);
    let parts = [
        (1, 0, q_dim),
        (2, q_dim, kv_dim),
        (3, q_dim + kv_dim, kv_dim),
    ];
    for (binding, begin, dim) in parts {
        let rows = qkv.chunks_exact(row_len(&p) as usize);
        let part: Vec<f32> = rows
            .flat_map(|row| &row[begin..begin + dim])
            .copied()
            .collect();
        t.store(binding, &part);
    }
}

/// Elements are only moved: exact.
fn cases() -> Vec<Case> {
    let shapes = [
        (1, 1, 1),
        (3, 576, 192),
        (2, 384, 384),
        (4, 10, 6),
        (2, 7, 9),
    ]
    .into_iter();
    shapes
        .map(|(seq_len, q_dim, kv_dim)| {
            let params = QKVSplitParams {
                seq_len,
                q_dim,
                kv_dim,
                ..Default::default()
            };
            let (q, kv) = ((seq_len * q_dim) as usize, (seq_len * kv_dim) as usize);
            Case::new(
                format!("tokens {seq_len}, q {q_dim}, kv {kv_dim}"),
                &params,
                0.0,
            )
            .bind(&Rng::new(u64::from(q_dim)).floats(q + 2 * kv, 1.0))
            .bind(&vec![f32::NAN; q])
            .bind(&vec![f32::NAN; kv])
            .bind(&vec![f32::NAN; kv])
        })
        .collect()
}
