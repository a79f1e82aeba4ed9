//! Which kernel computes a product.
//!
//! Reading the weights once is what counts, then how often x is read:
//!
//! | rows of x | kernel | because |
//! |---|---|---|
//! | 1 | `gemv`, `gemv_wide` from 32 768 outputs on | nothing to share between rows; a wide output fills the GPU with half as many SIMD groups |
//! | 1, NVIDIA | `decode_gemv` | four weights at a time, x staged once for the outputs of a threadgroup |
//! | 2 to 64, NVIDIA | `decode_gemm`, `decode_gemm_wide` from 17 on (with super-blocks from 2 on), `decode_gemm_widest` from 33 on; of small weights `decode_gemm` or, where half as many threadgroups fill the GPU, `decode_gemm_double` | tensor cores; weights are decoded into their registers, up to three weights in a launch; common formats but MLX's |
//! | from 17, NVIDIA's Hopper | `async_gemm_32`, `…_64`, `…_128` | tensor cores that read x themselves while the next weights are decoded; the same formats |
//! | from 2, NVIDIA | `tensor_gemm_small`, `…_medium`, `tensor_gemm` | tensor cores, by the largest tile that keeps three of four multiprocessors busy; only MLX's formats have the small one, rare ones the medium one alone, and weights in f32 none |
//! | 2 to 4 | `gemv_batched` | weights are read once, and x is still small beside them |
//! | 5 to 8 | `simd_gemm_small` | x is staged once for 64 outputs, one tile of 8 rows |
//! | from 9 | `simd_gemm` | one tile of 32 rows reads the weights once, two tiles of 8 twice |
//!
//! The limits follow from the bytes each kernel moves; they are to be measured on a Mac. `decode_gemv` was measured on
//! an H200 (docs/nvidia-log.md).

use akunu_types::DType;
use akunu_types::params::DecodeGemmParams;

use crate::chip::ChipConfig;
use crate::kernel::convert::half_rows::Order;
use crate::kernel::fused::norm_gemv::X_ALIGNMENT;
use crate::kernel::nvidia::tensor_gemm::{TILE_ROWS, is_common, n_large_tiles};
use crate::kernel::nvidia::{async_gemm, decode_gemm, shared_gemm};
use crate::table::KernelId;

/// Outputs from which `gemv_wide` is used: vocabularies, not hidden layers.
const WIDE_N: u32 = 32_768;
/// Most values of a weight whose rows of x are those of several threadgroups of `decode_gemm` or `decode_gemm_double`: it stays in
/// the second cache, so that reading it again costs less than a GPU that is mostly idle. Measured on an H200 (docs/nvidia-log.md).
const SMALL_WEIGHT: u32 = 5 << 20;
/// Most rows for `gemv_batched`.
const BATCHED_M: u32 = 4;
/// Most rows for `simd_gemm_small`: one tile.
const SMALL_M: u32 = 8;

/// The kernel for `m` rows and `n` outputs with weights of a format. `x` is where its rows begin, in bytes.
pub fn product_kernel(dtype: DType, (m, n): (u32, u32), x: usize, chip: &ChipConfig) -> KernelId {
    match m {
        0..=1 if chip.is_nvidia() && x.is_multiple_of(X_ALIGNMENT) => KernelId::DecodeGemv(dtype),
        0..=1 if n < WIDE_N => KernelId::Gemv(dtype),
        0..=1 => KernelId::GemvWide(dtype),
        2..=BATCHED_M => KernelId::GemvBatched(dtype),
        m if m <= SMALL_M => KernelId::SimdGemmSmall(dtype),
        _ => KernelId::SimdGemm(dtype),
    }
}

/// The kernel on tensor cores for `m` rows, `n` outputs and `k` columns, where the chip has them and they pay. It reads x in
/// halves. A format that is not common has one tile for all rows.
pub fn tensor_kernel(
    dtype: DType,
    (m, n, k): (u32, u32, u32),
    chip: &ChipConfig,
) -> Option<KernelId> {
    if !chip.has_tensors() || m < 2 || dtype == DType::F32 {
        return None;
    }
    let [small, medium, _] = TILE_ROWS;
    // More rows would decode the weights again.
    let is_decoding = m <= shared_gemm::WIDEST_ROWS && shared_gemm::takes(dtype, k);
    let has_narrow = decode_gemm::formats().any(|known| known == dtype);
    let is_narrow = m <= decode_gemm::ROWS || n.saturating_mul(k) <= SMALL_WEIGHT;
    let is_async = chip.has_async_products() && shared_gemm::takes(dtype, k);
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

/// The kernel of a launch whose first product has this one. It reads x in the same order.
pub fn launch_kernel(kernel: KernelId, p: &DecodeGemmParams, chip: &ChipConfig) -> KernelId {
    match kernel {
        KernelId::DecodeGemm(dtype) if decode_gemm::has_double_rows(p, chip) => {
            KernelId::DecodeGemmDouble(dtype)
        }
        _ => kernel,
    }
}

/// Whether a kernel is one of [`tensor_kernel`] that reads x in rows of halves.
pub fn reads_halves(kernel: KernelId) -> bool {
    use KernelId::{TensorGemm, TensorGemmMedium, TensorGemmSmall};
    matches!(
        kernel,
        TensorGemm(_) | TensorGemmMedium(_) | TensorGemmSmall(_)
    )
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

    #[test]
    fn each_shape_has_its_kernel() {
        let d = DType::Q4_0;
        let table = [
            ((1, 576), KernelId::Gemv(d)),
            ((1, 32_767), KernelId::Gemv(d)),
            ((1, 49_152), KernelId::GemvWide(d)),
            ((2, 576), KernelId::GemvBatched(d)),
            ((4, 49_152), KernelId::GemvBatched(d)),
            ((5, 576), KernelId::SimdGemmSmall(d)),
            ((8, 576), KernelId::SimdGemmSmall(d)),
            ((9, 576), KernelId::SimdGemm(d)),
            ((512, 576), KernelId::SimdGemm(d)),
        ];
        for ((m, n), kernel) in table {
            let m1 = ChipConfig::m1();
            assert_eq!(product_kernel(d, (m, n), 0, &m1), kernel, "m {m}, n {n}");
            let nvidia = ChipConfig {
                family: GpuFamily::Nvidia(90),
                ..m1
            };
            let chosen = |x| product_kernel(d, (m, n), x, &nvidia);
            let decoding = if m == 1 {
                KernelId::DecodeGemv(d)
            } else {
                kernel
            };
            assert_eq!(chosen(32), decoding, "m {m}, n {n}");
            assert_eq!(chosen(20), kernel, "its vector loads need 16 bytes");
        }
    }
}
