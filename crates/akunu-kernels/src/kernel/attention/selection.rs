//! Which attention kernel: a pure function of the shape, and how many parts it has on a chip.
//!
//! One query: a short context is over before more threads help. Where rows and heads fill the chip, each has a SIMD group
//! of its own, without barriers. Where they do not, the keys of each are split into parts, of which a second kernel makes
//! one. Many queries: tiles pay as soon as one is full, and registers hold the tile of a prefill where the head is small.

use super::flash_attention_decode_split::{MAX_PARTS, MAX_SHARED};
use super::flash_attention_prefill_v2::V2_MAX_HEAD_DIM;
use crate::chip::ChipConfig;
use crate::constant::{Constant, Constants};
use crate::pipeline::PipelineKey;
use crate::table::KernelId;

/// Up to as many keys a threadgroup with barriers is as fast as any.
pub const SHORT_CONTEXT: u32 = 64;
/// Keys of a tile: a part has at least one.
const KEY_TILE: u32 = 32;
/// From as many queries on the register kernel pays: two of its blocks.
pub const LONG_PREFILL: u32 = 64;
/// Heads up to this size leave room for 16 query rows in the first prefill kernel.
pub const SMALL_HEAD: u32 = 64;

/// What the choice depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionShape {
    /// Rows of one sequence in a launch: 1 for decode, however many sequences step together.
    pub n_queries: u32,
    /// Keys expected: the context length, or the window where it is smaller.
    pub n_keys: u32,
    /// Elements of a head.
    pub head_dim: u32,
    /// Rows, each with keys of its own, times heads: what is there to do at once.
    pub n_row_heads: u32,
    /// Query heads that share keys.
    pub n_shared: u32,
    /// Sliding window.
    pub window: Option<u32>,
    /// Soft cap of the scores.
    pub softcap: Option<f32>,
}

impl AttentionShape {
    /// Keys that a row sees at most.
    fn keys(&self) -> u32 {
        self.window.map_or(self.n_keys, |w| w.min(self.n_keys))
    }
}

/// The kernel that does it alone, and its constants.
pub fn select(shape: &AttentionShape) -> PipelineKey {
    let kernel = match shape.n_queries {
        0 | 1 => decode_kernel(shape),
        _ => prefill_kernel(shape),
    };
    with_constants(kernel, shape)
}

/// The kernel that leaves [`parts`], and its constants.
pub fn split(shape: &AttentionShape) -> PipelineKey {
    with_constants(KernelId::FlashAttentionDecodeSplit, shape)
}

/// The same constants for a window and a soft cap, where a model has them.
pub(crate) fn with_limits(
    mut constants: Constants,
    window: Option<u32>,
    softcap: Option<f32>,
) -> Constants {
    if let Some(window) = window {
        constants = constants.with_u32(Constant::Window, window);
    }
    if let Some(cap) = softcap {
        constants = constants.with_f32(Constant::Softcap, cap);
    }
    constants
}

/// A kernel with the constants of a shape.
pub(crate) fn with_constants(kernel: KernelId, shape: &AttentionShape) -> PipelineKey {
    let constants = Constants::none().with_u32(Constant::HeadDim, shape.head_dim);
    let mut constants = with_limits(constants, shape.window, shape.softcap);
    if kernel == KernelId::FlashAttentionPrefill {
        constants = constants.with_u32(Constant::QueryRows, query_rows(shape.head_dim));
    }
    PipelineKey { kernel, constants }
}

/// Parts that fill the chip, one for a tile of keys at most; 1 where there is nothing to split.
pub fn parts(shape: &AttentionShape, chip: &ChipConfig) -> u32 {
    if shape.n_queries > 1 || shape.n_shared > MAX_SHARED || shape.keys() <= SHORT_CONTEXT {
        return 1;
    }
    let filling = chip.gpu_cores * chip.thresholds.attention_simd_groups / shape.n_row_heads.max(1);
    filling.clamp(1, MAX_PARTS.min(shape.keys().div_ceil(KEY_TILE)))
}

fn decode_kernel(shape: &AttentionShape) -> KernelId {
    if shape.keys() <= SHORT_CONTEXT {
        KernelId::FlashAttentionDecode
    } else {
        KernelId::FlashAttentionDecodeFast
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
        n_row_heads: 32,
        n_shared: 4,
        window: None,
        softcap: None,
    };

    /// The decision tree at each of its borders: queries, keys, head_dim, kernel.
    #[test]
    fn the_decision_tree() {
        use KernelId::*;
        let table = [
            (1, 1, 64, FlashAttentionDecode),
            (1, 64, 256, FlashAttentionDecode),
            (1, 65, 256, FlashAttentionDecodeFast),
            (1, 4096, 64, FlashAttentionDecodeFast),
            (2, 4096, 64, FlashAttentionDecode),
            (31, 31, 64, FlashAttentionDecode),
            (32, 32, 64, FlashAttentionPrefill),
            (15, 15, 128, FlashAttentionDecode),
            (16, 16, 128, FlashAttentionPrefill),
            (63, 63, 128, FlashAttentionPrefill),
            (64, 64, 128, FlashAttentionPrefillV2),
            (512, 512, 256, FlashAttentionPrefill),
        ];
        for (n_queries, n_keys, head_dim, kernel) in table {
            let shape = AttentionShape {
                n_queries,
                n_keys,
                head_dim,
                ..SHAPE
            };
            assert_eq!(select(&shape).kernel, kernel, "{shape:?}");
        }
    }

    #[test]
    fn a_window_bounds_the_keys() {
        let shape = AttentionShape {
            n_keys: 100_000,
            window: Some(512),
            ..SHAPE
        };
        let key = select(&shape);
        assert_eq!(key.kernel, KernelId::FlashAttentionDecodeFast);
        assert_eq!(key.constants.u32(Constant::Window), Some(512));
        let narrow = AttentionShape {
            window: Some(64),
            ..shape
        };
        let key = select(&narrow);
        assert_eq!(key.kernel, KernelId::FlashAttentionDecode);
    }

    /// Parts at each border: keys, rows times heads, cores. Breaks when a chip is left empty, when a part has no tile of its
    /// own, or when rows that fill the chip are split all the same.
    #[test]
    fn parts_fill_the_chip() {
        let table = [
            (64, 32, 132, 1),
            (65, 32, 132, 3),
            (4096, 32, 132, 64),
            (4096, 32, 8, 4),
            (100_000, 9, 132, 64),
            (4096, 32 * 64, 132, 1),
            (4096, 32 * 4, 132, 16),
        ];
        for (n_keys, n_row_heads, gpu_cores, expected) in table {
            let shape = AttentionShape {
                n_keys,
                n_row_heads,
                ..SHAPE
            };
            let chip = ChipConfig {
                gpu_cores,
                ..ChipConfig::m1()
            };
            assert_eq!(
                parts(&shape, &chip),
                expected,
                "{shape:?}, {gpu_cores} cores"
            );
        }
        let prompt = AttentionShape {
            n_queries: 2,
            n_keys: 4096,
            ..SHAPE
        };
        assert_eq!(parts(&prompt, &ChipConfig::m1()), 1);
        let shared = AttentionShape {
            n_shared: MAX_SHARED + 1,
            n_keys: 4096,
            ..SHAPE
        };
        assert_eq!(parts(&shared, &ChipConfig::m1()), 1);
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
                let key = select(&shape);
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
                    ..SHAPE
                };
                let key = select(&shape);
                let known = key.kernel.row().constants;
                for (constant, _) in key.constants.iter() {
                    assert!(known.contains(&constant), "{constant:?} in {shape:?}");
                }
            }
        }
    }
}
