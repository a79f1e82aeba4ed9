//! `flash_attention_prefill_f16`: 8 or 16 rows of one sequence a threadgroup, SIMD group matrices; medium
//! prefills and heads of up to 256 elements.

#[cfg(feature = "testing")]
use crate::kernel::attention::cases;
use akunu_types::params::AttentionParams;

use super::{CONSTANTS, flash_attention_decode, grid, work_of};
use crate::constant::Constant;
use crate::table::{Args, KernelRow, Launch};

/// Queries times elements of a head that the kernel has room for.
pub const MAX_QUERY_ELEMENTS: u32 = 2048;
/// Query rows where the constant is not set.
const DEFAULT_QUERY_ROWS: u32 = 8;
/// Threads of the prefill kernels: four SIMD groups.
pub const PREFILL_THREADS: u32 = 128;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("flash_attention_prefill_f16", ""),
    source: "flash_attention_prefill",
    constants: &[
        CONSTANTS[0],
        CONSTANTS[1],
        CONSTANTS[2],
        CONSTANTS[3],
        Constant::QueryRows,
    ],
    launch: |args, _| launch(args),
    work: |args, once| work_of(args, once, 1),
    #[cfg(feature = "testing")]
    cases: |_| cases::prefill(),
    ..flash_attention_decode::ROW
};

/// Numbers of rows that the kernel was not written for get an empty grid.
fn launch(args: &Args) -> Launch {
    let p: AttentionParams = args.params();
    let rows = args.constants.u32(Constant::QueryRows);
    let rows = rows.unwrap_or(DEFAULT_QUERY_ROWS);
    let max_head_dim = match rows {
        8 | 16 => MAX_QUERY_ELEMENTS / rows,
        _ => 0,
    };
    Launch::new(
        grid(args, &p, rows.max(1), max_head_dim),
        [PREFILL_THREADS, 1, 1],
    )
}
