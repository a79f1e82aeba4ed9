//! `flash_attention_decode_f16`: a threadgroup a row and head, a thread for each element of the head.
//!
//! The general kernel: short contexts; prefills too short for tiles.

use akunu_types::params::AttentionParams;

use super::{Buffers, CONSTANTS, MAX_HEAD_DIM, cases, formula, grid, head_dim, work};
use crate::chip::SIMD_WIDTH;
use crate::table::{Args, Family, KernelRow, Launch};

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("flash_attention_decode_f16", ""),
    family: Family::Attention,
    source: "flash_attention_decode",
    constants: CONSTANTS,
    launch: |args, _| launch(args),
    work,
    twin: formula::attention,
    cases: |_| cases::decode(),
    ..KernelRow::of::<Buffers<()>>()
};

fn launch(args: &Args) -> Launch {
    let p: AttentionParams = args.params();
    let threads = head_dim(args, &p).clamp(1, MAX_HEAD_DIM);
    Launch::new(
        grid(args, &p, 1, MAX_HEAD_DIM),
        [threads.next_multiple_of(SIMD_WIDTH), 1, 1],
    )
}
