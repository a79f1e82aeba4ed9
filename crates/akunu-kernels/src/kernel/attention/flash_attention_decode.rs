//! `flash_attention_decode_f16`: a threadgroup a row and head, a thread for each element of the head.
//!
//! The general kernel: short contexts; prefills too short for tiles.
//!
//! `flash_attention_sinks_f16`: the same with a *sink* for each head, a learnt score without a value that takes its share of the
//! weights: `O = Σ_s e^(score_s) V_s / (e^sink + Σ_s e^(score_s))`.

use akunu_types::SharedStruct;
use akunu_types::params::AttentionParams;

use super::{
    BINDINGS, CONSTANTS, MAX_HEAD_DIM, SINK_BINDINGS, cases, formula, grid, head_dim, required,
    work,
};
use crate::chip::SIMD_WIDTH;
use crate::extent::bytes;
use crate::table::{Args, Family, KernelRow, Launch};

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("flash_attention_decode_f16", ""),
    dtype: None,
    family: Family::Attention,
    source: "flash_attention_decode",
    bindings: BINDINGS,
    params_index: 4,
    params: AttentionParams::LAYOUT,
    constants: CONSTANTS,
    launch: |args, _| launch(args),
    required,
    work,
    twin: formula::attention,
    cases: |_| cases::decode(),
};

/// The row of the kernel with sinks.
pub const SINKS: KernelRow = KernelRow {
    name: ("flash_attention_sinks_f16", ""),
    bindings: SINK_BINDINGS,
    required: |args| {
        let sinks = bytes::<f32>(&[args.params::<AttentionParams>().n_heads]);
        [required(args), vec![sinks]].concat()
    },
    work,
    twin: formula::with_sinks,
    cases: |_| cases::sinks(),
    ..ROW
};

fn launch(args: &Args) -> Launch {
    let p: AttentionParams = args.params();
    let threads = head_dim(args, &p).clamp(1, MAX_HEAD_DIM);
    Launch::new(
        grid(args, &p, 1, MAX_HEAD_DIM),
        [threads.next_multiple_of(SIMD_WIDTH), 1, 1],
    )
}
