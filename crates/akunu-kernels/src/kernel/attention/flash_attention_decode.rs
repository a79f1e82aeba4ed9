//! `flash_attention_decode_f16`: a threadgroup a row and head, a thread for each element of the head.
//!
//! The general kernel: short contexts; prefills too short for tiles.

#[cfg(feature = "testing")]
use crate::kernel::attention::cases;
use akunu_types::params::AttentionParams;

use super::formula::Given;
use super::{Buffers, CONSTANTS, MAX_DECODE_HEAD_DIM, Slices, grid, head_dim, work};
use crate::chip::SIMD_WIDTH;
use crate::table::{Args, Family, KernelRow, Launch};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("flash_attention_decode_f16", ""),
    family: Family::Attention,
    source: "flash_attention_decode",
    constants: CONSTANTS,
    launch: |args, _| launch(args),
    work,
    twin: |t| twin_by(t, |query, _| query),
    #[cfg(feature = "testing")]
    cases: |_| cases::long_heads(),
    ..KernelRow::of::<Buffers<()>>()
};

/// `rounded` gives what a kernel makes of an element of a query; its second argument is the factor that it has in scores of base 2.
pub fn twin_by(t: &mut Twin, rounded: fn(f32, f32) -> f32) {
    let args = t.args();
    let b = Slices::of(t);
    let given = Given {
        args,
        q: b.Q,
        k: b.K,
        v: b.V,
        rows: b.rows,
        table: b.table,
    };
    given.whole_heads(rounded, &|_| None, b.O);
}

fn launch(args: &Args) -> Launch {
    let p: AttentionParams = args.params();
    let threads = head_dim(args, &p).clamp(1, MAX_DECODE_HEAD_DIM);
    Launch::new(
        grid(args, &p, 1, MAX_DECODE_HEAD_DIM),
        [threads.next_multiple_of(SIMD_WIDTH), 1, 1],
    )
}
