//! `flash_attention_prefill_v2_f16`: 32 rows of one sequence a threadgroup, everything but the keys and
//! values in registers; long prefills and heads of up to 128 elements.

#[cfg(feature = "testing")]
use crate::kernel::attention::cases;
use akunu_types::params::AttentionParams;

use super::flash_attention_prefill::PREFILL_THREADS;
use super::{flash_attention_decode, flash_attention_prefill, grid};
use crate::table::{KernelRow, Launch};

/// The largest head whose output fits into registers.
pub const V2_MAX_HEAD_DIM: u32 = 128;
/// Queries of a threadgroup.
const V2_QUERY_ROWS: u32 = 32;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("flash_attention_prefill_v2_f16", ""),
    source: "flash_attention_prefill_v2",
    launch: |args, _| {
        let p: AttentionParams = args.params();
        let grid = grid(args, &p, V2_QUERY_ROWS, V2_MAX_HEAD_DIM);
        Launch::new(grid, [PREFILL_THREADS, 1, 1])
    },
    #[cfg(feature = "testing")]
    cases: |_| cases::prefill_v2(),
    work: flash_attention_prefill::ROW.work,
    ..flash_attention_decode::ROW
};
