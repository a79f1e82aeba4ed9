//! `flash_attention_decode_f16`: a threadgroup a row and head, a thread for each element of the head.
//!
//! The general kernel: short contexts; prefills too short for tiles.
//!
//! `flash_attention_sinks_f16`: the same with a *sink* for each head, a learnt score without a value that takes its share of the
//! weights: `O = Σ_s e^(score_s) V_s / (e^sink + Σ_s e^(score_s))`.

use akunu_types::params::AttentionParams;

use super::{Buffers, CONSTANTS, MAX_HEAD_DIM, SinkBuffers, cases, formula, grid, head_dim, work};
use crate::chip::SIMD_WIDTH;
use crate::table::{Args, BufferSet, Family, KernelRow, Launch};

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("flash_attention_decode_f16", ""),
    twin: formula::attention,
    cases: |_| cases::decode(),
    ..row::<Buffers<()>>()
};

/// The row of the kernel with sinks.
pub const SINKS: KernelRow = KernelRow {
    name: ("flash_attention_sinks_f16", ""),
    twin: formula::with_sinks,
    cases: |_| cases::sinks(),
    ..row::<SinkBuffers<()>>()
};

/// What both have in common.
const fn row<B: BufferSet>() -> KernelRow {
    KernelRow {
        family: Family::Attention,
        source: "flash_attention_decode",
        constants: CONSTANTS,
        launch: |args, _| launch(args),
        work,
        ..KernelRow::of::<B>()
    }
}

fn launch(args: &Args) -> Launch {
    let p: AttentionParams = args.params();
    let threads = head_dim(args, &p).clamp(1, MAX_HEAD_DIM);
    Launch::new(
        grid(args, &p, 1, MAX_HEAD_DIM),
        [threads.next_multiple_of(SIMD_WIDTH), 1, 1],
    )
}
