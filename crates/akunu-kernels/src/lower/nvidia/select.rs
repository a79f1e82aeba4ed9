//! Which kernel computes a product or reads a prompt on an NVIDIA GPU, where it is one of NVIDIA's own.
//!
//! | rows of x | kernel | because |
//! |---|---|---|
//! | 1 | `decode_gemv` | four weights at a time, x staged once for the outputs of a threadgroup |
//! | 2 to 64 | `decode_gemm`, `decode_gemm_wide` from 17 on (with super-blocks from 2 on), `decode_gemm_widest` from 33 on; of small weights `decode_gemm` or, where half as many threadgroups fill the GPU, `decode_gemm_double` | tensor cores; weights are decoded into their registers, up to three weights in a launch; common formats but MLX's |
//! | from 17 on, on Hopper | `async_gemm_32`, `…_64`, `…_128` | tensor cores that read x themselves while the next weights are decoded; the same formats |
//! | from 2 | `tensor_gemm_small`, `…_medium`, `tensor_gemm` | tensor cores, by the largest tile that keeps three of four multiprocessors busy; only MLX's formats have the small one, rare ones the medium one alone, and weights in f32 none |
//!
//! The results of experts are sorted where there is one for every two experts (`2 * rows * used >= experts`): where an expert has up to
//! eight in the mean they are those of `tensor_experts_small`, otherwise of `tensor_experts`.
//!
//! All others are those of every GPU ([`select`]). `decode_gemv` was measured on an H200
//! (docs/nvidia-log.md).

use akunu_types::DType;
use akunu_types::params::DecodeGemmParams;

use crate::chip::{ChipConfig, Thresholds};
use crate::kernel::attention::selection::{AttentionShape, with_constants};
use crate::kernel::convert::half_rows::Order;
use crate::kernel::experts::select::{self as grouped, GroupedKernel, Routed};
use crate::kernel::fused::norm_gemv::X_ALIGNMENT;
use crate::kernel::matmul::select;
use crate::kernel::nvidia::tensor_gemm::{TILE_ROWS, is_common, n_large_tiles};
use crate::kernel::nvidia::{
    Generation, async_gemm, decode_gemm, shared_gemm, tensor_attention, tensor_experts,
};
use crate::lower::lowering::ProductShape;
use crate::pipeline::PipelineKey;
use crate::table::KernelId;

/// Most values of a weight whose rows of x are those of several threadgroups of `decode_gemm` or `decode_gemm_double`: it stays in
/// the second cache, so that reading it again costs less than a GPU that is mostly idle. Measured on an H200 (docs/nvidia-log.md).
const SMALL_WEIGHT: u32 = 5 << 20;
/// Results are sorted from one for as many experts on, in the mean. Measured on an H200 (docs/nvidia-log.md).
const EXPERTS_OF_RESULT: u32 = 2;
/// Up to as many results of an expert, in the mean, tiles are small. Measured there too.
const FEW_OF_EXPERT: u32 = 8;
/// From as many queries on a quarter of a block of the tensor kernel is full, and the matrices pay.
const SHORT_PREFILL: u32 = 16;

/// The kernel of a product of floats.
pub fn product_kernel(shape: &ProductShape, limits: &Thresholds) -> KernelId {
    let &ProductShape {
        dtype,
        rows,
        outputs,
        x_offset,
    } = shape;
    match rows {
        0..=1 if x_offset.is_multiple_of(X_ALIGNMENT) => KernelId::DecodeGemv(dtype),
        _ => select::product_kernel(dtype, (rows, outputs), limits),
    }
}

/// The kernel on tensor cores that reads a prompt, where the chip has them and they pay.
pub fn attention_kernel(shape: &AttentionShape, chip: &ChipConfig) -> Option<PipelineKey> {
    let is_taken = Generation::of(chip).has_tensor_cores()
        && shape.n_queries >= SHORT_PREFILL
        && shape.head_dim <= tensor_attention::MAX_HEAD_DIM
        && shape.head_dim.is_multiple_of(tensor_attention::HEAD_STEP);
    is_taken.then(|| with_constants(KernelId::TensorAttention, shape))
}

/// The kernel on tensor cores for `m` rows, `n` outputs and `k` columns, where the chip has them and they pay. It reads x in
/// halves. A format that is not common has one tile for all rows.
pub fn tensor_kernel(
    dtype: DType,
    (m, n, k): (u32, u32, u32),
    chip: &ChipConfig,
) -> Option<KernelId> {
    let generation = Generation::of(chip);
    if !generation.has_tensor_cores() || m < 2 || dtype == DType::F32 {
        return None;
    }
    let [small, medium, _] = TILE_ROWS;
    // More rows would decode the weights again.
    let is_decoding = m <= shared_gemm::WIDEST_ROWS && shared_gemm::takes(dtype, k);
    let has_narrow = decode_gemm::formats().any(|known| known == dtype);
    let is_narrow = m <= decode_gemm::ROWS || n.saturating_mul(k) <= SMALL_WEIGHT;
    let is_async = generation.has_async_products() && shared_gemm::takes(dtype, k);
    Some(if is_decoding && is_narrow && has_narrow {
        KernelId::DecodeGemm(dtype)
    } else if is_async && m <= async_gemm::FEWEST_ROWS {
        KernelId::AsyncGemm32(dtype)
    } else if is_async && m <= async_gemm::FEW_ROWS {
        KernelId::AsyncGemm64(dtype)
    } else if is_async {
        KernelId::AsyncGemm128(dtype)
    } else if is_decoding && m <= shared_gemm::WIDE_ROWS {
        KernelId::DecodeGemmWide(dtype)
    } else if is_decoding {
        KernelId::DecodeGemmWidest(dtype)
    } else if !is_common(dtype) {
        KernelId::TensorGemmMedium(dtype)
    } else if m <= small && dtype.mlx_bits().is_some() {
        KernelId::TensorGemmSmall(dtype)
    } else if m <= medium || 4 * n_large_tiles(m, n) < 3 * chip.gpu_cores {
        KernelId::TensorGemmMedium(dtype)
    } else {
        KernelId::TensorGemm(dtype)
    })
}

/// The kernel of products with experts, if their results are sorted.
pub fn grouped_kernel(dtype: DType, routed: &Routed, chip: &ChipConfig) -> Option<GroupedKernel> {
    if !Generation::of(chip).has_tensor_cores() || dtype == DType::F32 {
        return grouped::grouped_kernel(dtype, routed);
    }
    let n_results = routed.n_results();
    if routed.n_rows < 2 || n_results.saturating_mul(EXPERTS_OF_RESULT) < routed.n_experts {
        return None;
    }
    let is_small = n_results <= routed.n_experts.saturating_mul(FEW_OF_EXPERT);
    Some(match is_small {
        true => GroupedKernel {
            kernel: KernelId::TensorExpertsSmall(dtype),
            tile: tensor_experts::SMALL_TILE,
        },
        false => GroupedKernel {
            kernel: KernelId::TensorExperts(dtype),
            tile: tensor_experts::TILE,
        },
    })
}

/// The kernel of a launch whose first product has this one. It reads x in the same order.
pub fn launch_kernel(kernel: KernelId, p: &DecodeGemmParams, chip: &ChipConfig) -> KernelId {
    match kernel {
        KernelId::DecodeGemm(dtype) if decode_gemm::has_double_rows(p, chip) => {
            KernelId::DecodeGemmDouble(dtype)
        }
        _ => kernel,
    }
}

/// In which order it reads x, if it is one of [`tensor_kernel`].
pub fn order_of_x(kernel: KernelId) -> Order {
    use KernelId::{AsyncGemm32, AsyncGemm64, AsyncGemm128};
    use KernelId::{DecodeGemm, DecodeGemmDouble, DecodeGemmWide, DecodeGemmWidest};
    match kernel {
        DecodeGemm(_) | DecodeGemmDouble(_) | DecodeGemmWide(_) | DecodeGemmWidest(_) => {
            Order::Spans
        }
        AsyncGemm32(_) | AsyncGemm64(_) | AsyncGemm128(_) => Order::Columns,
        _ => Order::Rows,
    }
}

/// In how many parts threadgroups share a product of such a kernel.
pub fn n_parts(kernel: KernelId, p: &DecodeGemmParams, chip: &ChipConfig) -> u32 {
    match kernel {
        KernelId::DecodeGemmWide(dtype) => {
            shared_gemm::n_parts(p, dtype, shared_gemm::WIDE_ROWS, chip)
        }
        KernelId::DecodeGemmWidest(dtype) => {
            shared_gemm::n_parts(p, dtype, shared_gemm::WIDEST_ROWS, chip)
        }
        KernelId::AsyncGemm32(dtype) => {
            async_gemm::n_parts(p, dtype, async_gemm::FEWEST_ROWS, chip)
        }
        KernelId::AsyncGemm64(dtype) => async_gemm::n_parts(p, dtype, async_gemm::FEW_ROWS, chip),
        KernelId::AsyncGemm128(dtype) => async_gemm::n_parts(p, dtype, async_gemm::MANY_ROWS, chip),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use KernelId::{AsyncGemm32, AsyncGemm64, AsyncGemm128};
    use KernelId::{DecodeGemm, DecodeGemmWide, DecodeGemmWidest, TensorGemm, TensorGemmMedium};

    use super::*;
    use crate::chip::GpuFamily;

    /// Breaks when a chip without these instructions gets a kernel that needs them, when weights in f32 lose their
    /// precision, or when tiles are so large that most of the GPU is idle.
    #[test]
    fn tensor_cores_take_several_rows_by_the_tile_that_fills_the_chip() {
        let chip = |family| ChipConfig {
            family,
            gpu_cores: 132,
            ..ChipConfig::m1()
        };
        let d = DType::Q4_0;
        let hopper = chip(GpuFamily::Nvidia(90));
        let ampere = chip(GpuFamily::Nvidia(80));
        // On Hopper, and on the generation before it.
        let table = [
            ((1, 4096), None, None),
            ((2, 4096), Some(DecodeGemm(d)), Some(DecodeGemm(d))),
            ((16, 4096), Some(DecodeGemm(d)), Some(DecodeGemm(d))),
            ((17, 4096), Some(AsyncGemm32(d)), Some(DecodeGemmWide(d))),
            ((17, 1024), Some(DecodeGemm(d)), Some(DecodeGemm(d))),
            ((64, 1024), Some(DecodeGemm(d)), Some(DecodeGemm(d))),
            ((32, 128_256), Some(AsyncGemm32(d)), Some(DecodeGemmWide(d))),
            (
                (33, 128_256),
                Some(AsyncGemm64(d)),
                Some(DecodeGemmWidest(d)),
            ),
            ((64, 4096), Some(AsyncGemm64(d)), Some(DecodeGemmWidest(d))),
            ((65, 4096), Some(AsyncGemm128(d)), Some(TensorGemmMedium(d))),
            (
                (512, 1024),
                Some(AsyncGemm128(d)),
                Some(TensorGemmMedium(d)),
            ),
            (
                (512, 3072),
                Some(AsyncGemm128(d)),
                Some(TensorGemmMedium(d)),
            ),
            ((512, 4096), Some(AsyncGemm128(d)), Some(TensorGemm(d))),
            ((512, 14_336), Some(AsyncGemm128(d)), Some(TensorGemm(d))),
            ((2048, 4096), Some(AsyncGemm128(d)), Some(TensorGemm(d))),
        ];
        for ((m, n), on_hopper, on_ampere) in table {
            let shape = (m, n, 4096);
            assert_eq!(tensor_kernel(d, shape, &hopper), on_hopper, "{shape:?}");
            assert_eq!(tensor_kernel(d, shape, &ampere), on_ampere, "{shape:?}");
            assert_eq!(tensor_kernel(DType::F32, shape, &hopper), None);
            let rare = on_hopper.map(|_| TensorGemmMedium(DType::Q5_1));
            assert_eq!(
                tensor_kernel(DType::Q5_1, shape, &hopper),
                rare,
                "{shape:?}"
            );
            for family in [GpuFamily::Nvidia(75), GpuFamily::Apple(9)] {
                assert_eq!(tensor_kernel(d, shape, &chip(family)), None);
            }
        }
        // Rows of weights that are not whole spans, and weights in several arrays.
        let kernel = |dtype, shape| tensor_kernel(dtype, shape, &hopper);
        let (odd, mlx) = (DType::F16, DType::MLX_Q4);
        assert_eq!(
            kernel(odd, (16, 4096, 65)),
            Some(KernelId::TensorGemmMedium(odd))
        );
        assert_eq!(
            kernel(mlx, (16, 4096, 4096)),
            Some(KernelId::TensorGemmSmall(mlx))
        );
        assert_eq!(
            kernel(mlx, (17, 4096, 4096)),
            Some(KernelId::TensorGemmMedium(mlx))
        );
    }

    /// By the mean of an expert's results: rows, experts of a row, experts.
    #[test]
    fn experts_of_few_results_have_small_tiles() {
        let hopper = ChipConfig {
            family: GpuFamily::Nvidia(90),
            ..ChipConfig::m1()
        };
        let d = DType::MXFP4;
        let small = Some(KernelId::TensorExpertsSmall(d));
        let large = Some(KernelId::TensorExperts(d));
        let table = [
            ([1, 8, 128], None),
            ([7, 8, 128], None),
            ([8, 8, 128], small),
            ([128, 8, 128], small),
            ([129, 8, 128], large),
            ([512, 8, 128], large),
            ([3, 4, 32], None),
            ([4, 4, 32], small),
            ([512, 4, 32], large),
            // A single row reads each weight once.
            ([1, 2, 2], None),
            ([2, 2, 8], small),
        ];
        let turing = ChipConfig {
            family: GpuFamily::Nvidia(75),
            ..ChipConfig::m1()
        };
        for ([n_rows, n_used, n_experts], kernel) in table {
            let routed = Routed {
                n_rows,
                n_used,
                n_experts,
            };
            let chosen = grouped_kernel(d, &routed, &hopper);
            assert_eq!(chosen.map(|chosen| chosen.kernel), kernel, "{routed:?}");
            // Without tensor cores, and weights that keep their precision.
            let general = |dtype| grouped::grouped_kernel(dtype, &routed);
            assert_eq!(grouped_kernel(d, &routed, &turing), general(d));
            let precise = grouped_kernel(DType::F32, &routed, &hopper);
            assert_eq!(precise, general(DType::F32));
        }
    }

    /// A single row is read by vectors of 16 bytes, where it lies so; further rows are those of every GPU.
    #[test]
    fn a_single_row_has_a_kernel_of_its_own() {
        let d = DType::Q4_0;
        let limits = ChipConfig::h200().thresholds;
        let chosen = |rows, outputs, x_offset| {
            let shape = ProductShape {
                dtype: d,
                rows,
                outputs,
                x_offset,
            };
            product_kernel(&shape, &limits)
        };
        for outputs in [576, 32_767, 49_152] {
            assert_eq!(chosen(1, outputs, 32), KernelId::DecodeGemv(d));
            let general = select::product_kernel(d, (1, outputs), &limits);
            assert_eq!(
                chosen(1, outputs, 20),
                general,
                "its vector loads need 16 bytes"
            );
        }
        for rows in [2, 5, 9, 512] {
            let general = select::product_kernel(d, (rows, 576), &limits);
            assert_eq!(chosen(rows, 576, 32), general, "{rows} rows");
        }
    }

    /// Breaks when a chip without tensor cores gets their kernel, or a head that it was not written for.
    #[test]
    fn tensor_cores_read_prompts() {
        let kernel = |n_queries, head_dim, capability| {
            let chip = ChipConfig {
                family: GpuFamily::Nvidia(capability),
                ..ChipConfig::m1()
            };
            let shape = AttentionShape {
                n_queries,
                n_keys: 1000,
                head_dim,
                n_row_heads: 32,
                n_shared: 4,
                window: None,
                softcap: None,
            };
            attention_kernel(&shape, &chip).map(|key| key.kernel)
        };
        assert_eq!(kernel(16, 128, 80), Some(KernelId::TensorAttention));
        assert_eq!(kernel(512, 80, 90), Some(KernelId::TensorAttention));
        for (n_queries, head_dim, capability) in [
            (15, 128, 90),
            (1, 128, 90),
            (512, 256, 90),
            (512, 40, 90),
            (512, 128, 75),
        ] {
            assert_eq!(kernel(n_queries, head_dim, capability), None);
        }
    }
}
