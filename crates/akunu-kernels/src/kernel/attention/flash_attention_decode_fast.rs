//! `flash_attention_decode_fast_f16`: one SIMD group a row and head, no barrier.

#[cfg(feature = "testing")]
use crate::kernel::attention::cases;
use akunu_types::params::AttentionParams;

use super::{MAX_HEAD_DIM, flash_attention_decode, grid};
use crate::chip::SIMD_WIDTH;
use crate::table::{KernelRow, Launch};

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("flash_attention_decode_fast_f16", ""),
    source: "flash_attention_decode_fast",
    launch: |args, _| {
        let p: AttentionParams = args.params();
        Launch::new(grid(args, &p, 1, MAX_HEAD_DIM), [SIMD_WIDTH, 1, 1])
    },
    #[cfg(feature = "testing")]
    cases: |_| cases::decode(),
    ..flash_attention_decode::ROW
};
