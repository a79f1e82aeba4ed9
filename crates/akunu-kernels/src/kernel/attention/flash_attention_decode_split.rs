//! `flash_attention_decode_split_f16`: a SIMD group for each row, head and part of the keys;
//! [`flash_attention_join`](super::flash_attention_join) joins the parts.
//!
//! Of every `n_parts` tiles of 32 keys, counted from the tile of the first that the row sees, part p takes one. It leaves its
//! own attention, and the logarithm to base 2 of the sum of its weights `2^score`: zeros and -∞ where it has no key. Heads
//! that share keys are in one threadgroup, which reads them from memory once; a pipeline that allows fewer threads has
//! equal shares of them in several.

#[cfg(feature = "testing")]
use crate::kernel::attention::cases;
use akunu_types::params::{AttentionParams, Row};

use super::formula::Given;
use super::{CONSTANTS, MAX_HEAD_DIM, is_supported, sizes, work};
use crate::chip::{ChipConfig, SIMD_WIDTH};
use crate::cost::Work;
use crate::table::{Args, Family, KernelRow, Launch, Pool, buffers};
use crate::twin::Twin;

/// Most parts of a row: what the joining kernel has room for.
pub const MAX_PARTS: u32 = 64;
/// Most query heads that share keys.
pub const MAX_SHARED: u32 = 16;
/// SIMD groups of a threadgroup, where heads that share keys are fewer.
const SIMD_GROUPS: u32 = 8;

buffers! {
    pub struct Buffers, Slices(|args| (p, pages, queries) = sizes(args), AttentionParams at 4) {
        Q: read f32 = queries,
        K: read Pool = pages.pool_bytes(),
        V: read Pool = pages.pool_bytes(),
        parts: write f32 = [p.n_rows, p.n_heads, p.n_parts, p.head_dim],
        rows: read Row = [p.first_row.saturating_add(p.n_rows)],
        table: read u32 = pages.table_len(),
        weights: write f32 = [p.n_rows, p.n_heads, p.n_parts],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("flash_attention_decode_split_f16", ""),
    family: Family::Attention,
    source: "flash_attention_decode_split",
    constants: CONSTANTS,
    launch,
    work: |args, once| split_work(args, once),
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::split(),
    ..KernelRow::of::<Buffers<()>>()
};

/// Shapes that the kernel cannot read get an empty grid, which the plan check refuses.
fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: AttentionParams = args.params();
    let is_supported = is_supported(args, &p, MAX_HEAD_DIM) && (1..=MAX_PARTS).contains(&p.n_parts);
    let n_shared = p.n_heads.checked_div(p.n_kv_heads).unwrap_or(0);
    if !is_supported || !(1..=MAX_SHARED).contains(&n_shared) {
        return Launch::new([0; 3], [SIMD_WIDTH, 1, 1]);
    }
    let allowed = chip.max_threads / SIMD_WIDTH;
    let n_together = heads_together(n_shared, allowed);
    let parts = (SIMD_GROUPS.min(allowed) / n_together).clamp(1, p.n_parts);
    Launch::new(
        [p.n_rows, p.n_heads / n_together, p.n_parts.div_ceil(parts)],
        [n_together * parts * SIMD_WIDTH, 1, 1],
    )
}

/// How many of the heads that share keys are in one threadgroup of at most `allowed` SIMD groups: all, or a part of them such
/// that each threadgroup has as many.
fn heads_together(n_shared: u32, allowed: u32) -> u32 {
    let mut counts = (1..=n_shared.min(allowed)).rev();
    counts
        .find(|&count| n_shared.is_multiple_of(count))
        .unwrap_or(1)
}

/// The same work as that of the other kernels, except for the traffic of the output: the parts are bound in its place.
fn split_work(args: &Args, once: Work) -> Work {
    let parts = once.traffic[Buffers::PLACES.parts];
    work(args, once).with(Buffers::PLACES.parts, parts)
}

fn twin(t: &mut Twin) {
    let args = t.args();
    let p: AttentionParams = t.params();
    let b = Slices::of(t);
    let given = Given {
        args,
        q: b.Q,
        k: b.K,
        v: b.V,
        rows: b.rows,
        table: b.table,
    };
    let as_it_is = (|query, _| query) as fn(f32, f32) -> f32;
    given.each_head(p.n_parts as usize, (as_it_is, &|_| None), |at, part| {
        let row = at.row - p.first_row as usize;
        let index = (row * p.n_heads as usize + at.head) * p.n_parts as usize + at.part;
        let n = part.output.len();
        b.parts[index * n..][..n].copy_from_slice(&part.output);
        b.weights[index] = part.weight;
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when a threadgroup gets more SIMD groups than its pipeline allows, or a head is left to none.
    #[test]
    fn heads_that_share_keys_are_divided_evenly() {
        for (n_shared, allowed, expected) in [
            (16, 32, 16),
            (16, 14, 8),
            (16, 4, 4),
            (12, 8, 6),
            (7, 4, 1),
            (1, 8, 1),
        ] {
            assert_eq!(heads_together(n_shared, allowed), expected);
        }
    }
}
