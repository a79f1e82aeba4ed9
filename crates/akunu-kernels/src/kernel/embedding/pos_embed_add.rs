//! `pos_embed_add_f32`: `x[t][i] += table[pos + t][i]`, in place.
//!
//! Learned positions (Whisper, BERT). A position beyond the table takes its last row.

use akunu_types::SharedStruct;
use akunu_types::params::PosEmbedParams;

use crate::case::{Case, Rng};
use crate::chip::ChipConfig;
use crate::cost::{Traffic, Work};
use crate::extent::bytes;
use crate::table::{Args, Element, Family, KernelRow, Launch, read, read_write};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("pos_embed_add_f32", ""),
    dtype: None,
    family: Family::Embedding,
    source: "pos_embed_add",
    bindings: &[
        read_write(0, "x", Element::F32),
        read(1, "table", Element::F32),
    ],
    params_index: 2,
    params: PosEmbedParams::LAYOUT,
    constants: &[],
    launch,
    required,
    work,
    twin,
    cases: |_| cases(),
};

/// One thread for four elements of each token; an empty table gives an empty grid, which the plan
/// check refuses.
fn launch(args: &Args, _: &ChipConfig) -> Launch {
    let p: PosEmbedParams = args.params();
    let Launch { grid, threads, .. } = Launch::elementwise4(p.dim);
    let n_tokens = if p.n_positions == 0 { 0 } else { p.seq_len };
    Launch::new([grid[0], n_tokens, 1], threads)
}

fn required(args: &Args) -> Vec<usize> {
    let p: PosEmbedParams = args.params();
    vec![
        bytes::<f32>(&[p.seq_len, p.dim]),
        bytes::<f32>(&[p.n_positions, p.dim]),
    ]
}

/// Of the table one row a token is read; beyond its end that is the last row again.
fn work(args: &Args, once: Work) -> Work {
    let p: PosEmbedParams = args.params();
    let rows = p.seq_len.min(p.n_positions);
    once.with(1, Traffic::read(bytes::<f32>(&[rows, p.dim])))
}

fn twin(t: &mut Twin) {
    let p: PosEmbedParams = t.params();
    let (dim, last) = (p.dim as usize, p.n_positions as usize - 1);
    let table = t.read::<f32>(1);
    for (token, row) in t.write::<f32>(0).chunks_exact_mut(dim).enumerate() {
        let position = (p.pos as usize + token).min(last);
        for (x, e) in row.iter_mut().zip(&table[position * dim..]) {
            *x += e;
        }
    }
}

fn cases() -> Vec<Case> {
    // [tokens, dim, position, positions]
    let shapes = [
        [1, 1, 0, 1],
        [5, 384, 0, 8],
        [1, 384, 7, 8],
        [4, 1030, 2, 4],
        [3, 6, u32::MAX, 2],
    ];
    shapes.into_iter().map(case).collect()
}

/// One addition each: exact.
fn case([seq_len, dim, pos, n_positions]: [u32; 4]) -> Case {
    let mut rng = Rng::new(u64::from(dim));
    let params = PosEmbedParams {
        seq_len,
        dim,
        pos,
        n_positions,
    };
    let label = format!("tokens {seq_len}, dim {dim}, position {pos} of {n_positions}");
    Case::new(label, &params, 0.0)
        .bind(&rng.floats((seq_len * dim) as usize, 1.0))
        .bind(&rng.floats((n_positions * dim) as usize, 1.0))
}
