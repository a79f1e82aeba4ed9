//! `flash_attention_decode_split_f16`: a SIMD group for each row, head and part of the keys;
//! [`flash_attention_join`](super::flash_attention_join) joins the parts.
//!
//! Of every `n_parts` tiles of 32 keys, counted from the tile of the first that the row sees, part p takes one. It leaves its
//! own attention, and the logarithm to base 2 of the sum of its weights `2^score`: zeros and -∞ where it has no key. Heads
//! that share keys are in one threadgroup, which reads them from memory once.

use akunu_types::SharedStruct;
use akunu_types::params::AttentionParams;

use super::{CONSTANTS, MAX_HEAD_DIM, cases, formula, is_supported, work};
use crate::chip::SIMD_WIDTH;
use crate::cost::{Traffic, Work};
use crate::extent::bytes;
use crate::kernel::attention;
use crate::table::{Args, Binding, Element, Family, KernelRow, Launch, read, write};

/// Most parts of a row: what the joining kernel has room for.
pub const MAX_PARTS: u32 = 64;
/// Most query heads that share keys.
pub const MAX_SHARED: u32 = 16;
/// SIMD groups of a threadgroup, where heads that share keys are fewer.
const SIMD_GROUPS: u32 = 8;

const BINDINGS: &[Binding] = &[
    read(0, "Q", Element::F32),
    read(1, "K", Element::F16),
    read(2, "V", Element::F16),
    write(3, "parts", Element::F32),
    read(5, "rows", Element::Row),
    read(6, "table", Element::U32),
    write(7, "weights", Element::F32),
];

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("flash_attention_decode_split_f16", ""),
    dtype: None,
    family: Family::Attention,
    source: "flash_attention_decode_split",
    bindings: BINDINGS,
    params_index: 4,
    params: AttentionParams::LAYOUT,
    constants: CONSTANTS,
    launch: |args, _| launch(args),
    required,
    work: |args, once| split_work(args, once),
    twin: formula::split,
    cases: |_| cases::split(),
};

/// Shapes that the kernel cannot read get an empty grid, which the plan check refuses.
fn launch(args: &Args) -> Launch {
    let p: AttentionParams = args.params();
    let is_supported = is_supported(args, &p, MAX_HEAD_DIM) && (1..=MAX_PARTS).contains(&p.n_parts);
    let n_shared = p.n_heads.checked_div(p.n_kv_heads).unwrap_or(0);
    if !is_supported || !(1..=MAX_SHARED).contains(&n_shared) {
        return Launch::new([0; 3], [SIMD_WIDTH, 1, 1]);
    }
    let parts = (SIMD_GROUPS / n_shared).clamp(1, p.n_parts);
    Launch::new(
        [p.n_rows, p.n_kv_heads, p.n_parts.div_ceil(parts)],
        [n_shared * parts * SIMD_WIDTH, 1, 1],
    )
}

/// Bytes of the parts and of their weights.
pub fn part_bytes(p: &AttentionParams) -> [usize; 2] {
    [
        bytes::<f32>(&[p.n_rows, p.n_heads, p.n_parts, p.head_dim]),
        bytes::<f32>(&[p.n_rows, p.n_heads, p.n_parts]),
    ]
}

fn required(args: &Args) -> Vec<usize> {
    let [parts, weights] = part_bytes(&args.params());
    let [q, k, v, _, rows, table] = attention::required(args)[..] else {
        unreachable!("six bindings")
    };
    vec![q, k, v, parts, rows, table, weights]
}

/// As the other kernels, but for what is written.
fn split_work(args: &Args, once: Work) -> Work {
    let written = once.traffic[3];
    work(args, once).with(3, Traffic { read: 0, ..written })
}
