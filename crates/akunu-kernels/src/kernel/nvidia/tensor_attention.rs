//! `tensor_attention_f16`: 64 rows of one sequence a threadgroup, on tensor cores; heads of up to 128 elements, a multiple
//! of 16.
//!
//! Queries, weights of the softmax, and keys and values of 8 bits, are rounded to halves.

#[cfg(feature = "testing")]
use crate::kernel::attention::cases;
use akunu_types::params::AttentionParams;
use half::f16;

use crate::kernel::attention;
use crate::kernel::attention::flash_attention_prefill::PREFILL_THREADS;
use crate::kernel::attention::{flash_attention_decode, flash_attention_prefill};
use crate::table::{Args, Family, KernelRow, Launch};

/// The largest head whose output fits into registers.
pub const MAX_HEAD_DIM: u32 = 128;
/// Elements of a head are a multiple of this.
pub const HEAD_STEP: u32 = 16;
/// Queries of a threadgroup.
const ROWS: u32 = 64;
/// Keys of a tile, and how many tiles there is room for.
const KEYS: u32 = 64;
const STAGES: u32 = 2;
/// Halves that a row in threadgroup memory has behind its elements.
const GAP: u32 = 8;

/// The row of the kernel table. Heads that the kernel was not written for, and rows that do not begin at pairs, get an empty
/// grid.
pub const ROW: KernelRow = KernelRow {
    name: ("tensor_attention_f16", ""),
    family: Family::Nvidia,
    source: "tensor_attention",
    launch: |args, _| launch(args),
    twin: |t| flash_attention_decode::twin_by(t, halved),
    #[cfg(feature = "testing")]
    cases: |_| cases::tensor(),
    work: flash_attention_prefill::ROW.work,
    ..flash_attention_decode::ROW
};

/// A query times its factor, rounded to a half.
fn halved(query: f32, factor: f32) -> f32 {
    f16::from_f32(query * factor).to_f32() / factor
}

fn launch(args: &Args) -> Launch {
    let p: AttentionParams = args.params();
    let is_even = p.q_stride.is_multiple_of(2);
    let max_head_dim = if is_even && p.head_dim.is_multiple_of(HEAD_STEP) {
        MAX_HEAD_DIM
    } else {
        0
    };
    let row_bytes = (p.head_dim.min(MAX_HEAD_DIM) + GAP) * size_of::<f16>() as u32;
    Launch {
        threadgroup_bytes: (ROWS + 2 * STAGES * KEYS) * row_bytes,
        ..Launch::new(
            attention::grid(args, &p, ROWS, max_head_dim),
            [PREFILL_THREADS, 1, 1],
        )
    }
}
