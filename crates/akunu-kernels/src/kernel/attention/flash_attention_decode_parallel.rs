//! `flash_attention_decode_parallel_f16`: as many SIMD groups as a threadgroup holds for one row and
//! head; long contexts.

use akunu_types::params::AttentionParams;

use super::{MAX_HEAD_DIM, cases, flash_attention_decode, grid};
use crate::chip::SIMD_WIDTH;
use crate::table::{KernelRow, Launch};

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("flash_attention_decode_parallel_f16", ""),
    source: "flash_attention_decode_parallel",
    launch: |args, chip| {
        let p: AttentionParams = args.params();
        let threads = chip.max_threads.clamp(SIMD_WIDTH, 1024) / SIMD_WIDTH * SIMD_WIDTH;
        Launch::new(grid(args, &p, 1, MAX_HEAD_DIM), [threads, 1, 1])
    },
    cases: |_| cases::parallel(),
    ..flash_attention_decode::ROW
};
