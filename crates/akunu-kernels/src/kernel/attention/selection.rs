//! Which attention kernel: a pure function of the shape and the chip.
//!
//! One query: a short context is over before more threads help, a medium one suits a SIMD group without
//! barriers, a long one needs all SIMD groups of a threadgroup to keep memory busy. Many queries: tiles
//! pay as soon as one is full, and registers hold the tile of a long prefill where the head is small.

use super::flash_attention_prefill_v2::V2_MAX_HEAD_DIM;
use crate::chip::{ChipConfig, SIMD_WIDTH};
use crate::constant::{Constant, Constants};
use crate::pipeline::PipelineKey;
use crate::table::KernelId;

/// Up to as many keys a threadgroup with barriers is as fast as any.
pub const SHORT_CONTEXT: u32 = 128;
/// From as many keys on all SIMD groups share one query.
pub const LONG_CONTEXT: u32 = 4096;
/// From as many queries on the register kernel pays.
pub const LONG_PREFILL: u32 = 1024;
/// Heads up to this size leave room for 16 query rows in the first prefill kernel.
pub const SMALL_HEAD: u32 = 64;
/// The parallel kernel is only worth its joining step with at least this many SIMD groups.
pub const MIN_PARALLEL_GROUPS: u32 = 8;

/// What the choice depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionShape {
    /// Rows of one sequence in a launch: 1 for decode, however many sequences step together.
    pub n_queries: u32,
    /// Keys expected: the context length, or the window where it is smaller.
    pub n_keys: u32,
    /// Elements of a head.
    pub head_dim: u32,
    /// Sliding window.
    pub window: Option<u32>,
    /// Soft cap of the scores.
    pub softcap: Option<f32>,
    /// Rows are the drafts of a speculation; at most [`super::mask::MAX_DRAFTS`].
    pub has_tree: bool,
}

/// The kernel and its constants.
pub fn select(shape: &AttentionShape, chip: &ChipConfig) -> PipelineKey {
    let kernel = match shape.n_queries {
        0 | 1 => decode_kernel(shape, chip),
        _ => prefill_kernel(shape),
    };
    let mut constants = Constants::none().with_u32(Constant::HeadDim, shape.head_dim);
    if let Some(window) = shape.window {
        constants = constants.with_u32(Constant::Window, window);
    }
    if let Some(cap) = shape.softcap {
        constants = constants.with_f32(Constant::Softcap, cap);
    }
    if shape.has_tree {
        constants = constants.with_bool(Constant::TreeMask, true);
    }
    if kernel == KernelId::FlashAttentionPrefill {
        constants = constants.with_u32(Constant::QueryRows, query_rows(shape.head_dim));
    }
    PipelineKey { kernel, constants }
}

fn decode_kernel(shape: &AttentionShape, chip: &ChipConfig) -> KernelId {
    let n_keys = shape.window.map_or(shape.n_keys, |w| w.min(shape.n_keys));
    let groups = chip.max_threads / SIMD_WIDTH;
    match n_keys {
        LONG_CONTEXT.. if groups >= MIN_PARALLEL_GROUPS => KernelId::FlashAttentionDecodeParallel,
        0..=SHORT_CONTEXT => KernelId::FlashAttentionDecode,
        _ => KernelId::FlashAttentionDecodeFast,
    }
}

fn prefill_kernel(shape: &AttentionShape) -> KernelId {
    let registers_suffice = shape.head_dim <= V2_MAX_HEAD_DIM;
    match shape.n_queries {
        LONG_PREFILL.. if registers_suffice => KernelId::FlashAttentionPrefillV2,
        n if n >= 2 * query_rows(shape.head_dim) => KernelId::FlashAttentionPrefill,
        _ => KernelId::FlashAttentionDecode,
    }
}

/// Query rows of a threadgroup of the first prefill kernel.
fn query_rows(head_dim: u32) -> u32 {
    if head_dim <= SMALL_HEAD { 16 } else { 8 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::attention::MAX_HEAD_DIM;
    use akunu_types::params::AttentionParams;

    const SHAPE: AttentionShape = AttentionShape {
        n_queries: 1,
        n_keys: 1000,
        head_dim: 64,
        window: None,
        softcap: None,
        has_tree: false,
    };

    /// The decision tree at each of its borders: queries, keys, head_dim, kernel.
    #[test]
    fn the_decision_tree() {
        use KernelId::*;
        let table = [
            (1, 1, 64, FlashAttentionDecode),
            (1, 128, 256, FlashAttentionDecode),
            (1, 129, 256, FlashAttentionDecodeFast),
            (1, 4095, 64, FlashAttentionDecodeFast),
            (1, 4096, 64, FlashAttentionDecodeParallel),
            (2, 4096, 64, FlashAttentionDecode),
            (31, 31, 64, FlashAttentionDecode),
            (32, 32, 64, FlashAttentionPrefill),
            (15, 15, 128, FlashAttentionDecode),
            (16, 16, 128, FlashAttentionPrefill),
            (1023, 1023, 128, FlashAttentionPrefill),
            (1024, 1024, 128, FlashAttentionPrefillV2),
            (1024, 1024, 256, FlashAttentionPrefill),
        ];
        for (n_queries, n_keys, head_dim, kernel) in table {
            let shape = AttentionShape {
                n_queries,
                n_keys,
                head_dim,
                ..SHAPE
            };
            assert_eq!(
                select(&shape, &ChipConfig::m1()).kernel,
                kernel,
                "{shape:?}"
            );
        }
    }

    #[test]
    fn a_window_bounds_the_keys() {
        let shape = AttentionShape {
            n_keys: 100_000,
            window: Some(512),
            ..SHAPE
        };
        let key = select(&shape, &ChipConfig::m1());
        assert_eq!(key.kernel, KernelId::FlashAttentionDecodeFast);
        assert_eq!(key.constants.u32(Constant::Window), Some(512));
    }

    /// A chip that allows few threads cannot run the parallel kernel well.
    #[test]
    fn a_small_threadgroup_falls_back() {
        let shape = AttentionShape {
            n_keys: 100_000,
            ..SHAPE
        };
        let chip = ChipConfig {
            max_threads: 224,
            ..ChipConfig::m1()
        };
        assert_eq!(
            select(&shape, &chip).kernel,
            KernelId::FlashAttentionDecodeFast
        );
    }

    /// What is chosen can be launched, for every head size that the kernels support.
    #[test]
    fn every_choice_has_a_grid() {
        for head_dim in (8..=MAX_HEAD_DIM).step_by(8) {
            for n_queries in [1, 2, 16, 64, 2048] {
                let shape = AttentionShape {
                    n_queries,
                    head_dim,
                    ..SHAPE
                };
                let key = select(&shape, &ChipConfig::m1());
                let params = AttentionParams {
                    n_rows: n_queries,
                    head_dim,
                    page_shift: 5,
                    n_heads: 4,
                    n_kv_heads: 2,
                    ..Default::default()
                };
                let row = key.kernel.row();
                let args = row.args(bytemuck::bytes_of(&params), &key.constants);
                let launch = (row.launch)(&args, &ChipConfig::m1());
                assert!(!launch.grid.contains(&0), "{shape:?}: {launch:?}");
            }
        }
    }

    /// Every constant that is chosen is one that the kernel looks at, for every branch.
    #[test]
    fn constants_are_the_kernels_own() {
        for n_queries in [1, 2, 16, 64, 2048] {
            for n_keys in [64, 1000, 10_000] {
                let shape = AttentionShape {
                    n_queries,
                    n_keys,
                    window: Some(n_keys),
                    softcap: Some(50.0),
                    has_tree: true,
                    ..SHAPE
                };
                let key = select(&shape, &ChipConfig::m1());
                let known = key.kernel.row().constants;
                for (constant, _) in key.constants.iter() {
                    assert!(known.contains(&constant), "{constant:?} in {shape:?}");
                }
            }
        }
    }
}
