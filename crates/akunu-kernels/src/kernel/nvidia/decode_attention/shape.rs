//! Heads, batches and threadgroups of the kernels.

use akunu_types::params::DecodeAttentionParams;

use crate::chip::ChipConfig;

/// The largest head.
pub const MAX_HEAD_DIM: u32 = 256;
/// Elements of a head are a multiple of this: of a lane's chunk in each of the two halves that turn together.
pub const HEAD_STEP: u32 = 64;
/// Most threadgroups for the heads that share keys.
pub const MAX_GROUPS: u32 = 64;
/// Slots of a tile.
pub(super) const KEY_TILE: u32 = 16;
/// SIMD groups of a threadgroup, and of a small one. As many fit on a core as two of the large ones have.
pub(super) const N_SIMD_GROUPS: u32 = 8;
pub(super) const FEW_SIMD_GROUPS: u32 = 4;
/// Most heads of a batch: half the rows of a matrix, since what rounding loses takes the other half.
pub(super) const BATCH_HEADS: u32 = 8;

/// Whether the kernels take such heads.
pub fn takes(n_heads: u32, n_kv_heads: u32, head_dim: u32) -> bool {
    (1..=n_heads).contains(&n_kv_heads)
        && n_heads.is_multiple_of(n_kv_heads)
        && (HEAD_STEP..=MAX_HEAD_DIM).contains(&head_dim)
        && head_dim.is_multiple_of(HEAD_STEP)
}

/// Whether they take heads of which so many elements turn: whole chunks in each half.
pub fn takes_turn(head_dim: u32, turned_dim: u32) -> bool {
    turned_dim <= head_dim && turned_dim.is_multiple_of(HEAD_STEP)
}

/// Streams of a threadgroup: of larger heads, two SIMD groups have half of the values each.
pub(super) const fn streams(p: &DecodeAttentionParams) -> u32 {
    if p.head_dim <= 128 {
        p.n_simd_groups
    } else {
        p.n_simd_groups / 2
    }
}

/// Heads that share keys.
pub(super) fn n_shared(p: &DecodeAttentionParams) -> u32 {
    p.n_heads.checked_div(p.n_kv_heads).unwrap_or(0)
}

/// Batches of the heads that share keys.
pub(super) fn batches(p: &DecodeAttentionParams) -> u32 {
    n_shared(p).div_ceil(BATCH_HEADS)
}

/// Batches of all rows.
pub(super) fn all_batches(p: &DecodeAttentionParams) -> u32 {
    p.n_rows.max(1) * p.n_kv_heads * batches(p)
}

/// SIMD groups of a threadgroup: few where the batches of all rows are more than large threadgroups run at once. Most of the time
/// of a short text goes to what comes before its first key.
pub fn simd_groups(p: &DecodeAttentionParams, chip: &ChipConfig) -> u32 {
    let take_turns = all_batches(p) > 2 * chip.gpu_cores;
    match take_turns && n_shared(p) <= FEW_SIMD_GROUPS {
        true => FEW_SIMD_GROUPS,
        false => N_SIMD_GROUPS,
    }
}

/// Threadgroups for each batch: two on each core, which hide each other's waiting, as long as each has a tile for all of its
/// streams.
pub fn groups(p: &DecodeAttentionParams, max_keys: u32, chip: &ChipConfig) -> u32 {
    let busy = max_keys.div_ceil(KEY_TILE * streams(p));
    let filling = 2 * chip.gpu_cores / all_batches(p);
    filling.min(busy).clamp(1, MAX_GROUPS)
}
