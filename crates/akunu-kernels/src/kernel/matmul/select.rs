//! Which kernel computes a product.
//!
//! Reading the weights once is what counts, then how often x is read:
//!
//! | rows of x | kernel | because |
//! |---|---|---|
//! | 1 | `gemv`, `gemv_wide` from 32 768 outputs on | nothing to share between rows; a wide output fills the GPU with half as many SIMD groups |
//! | 2 to 4 | `gemv_batched` | weights are read once, and x is still small beside them |
//! | 5 to 8 | `simd_gemm_small` | x is staged once for 64 outputs, one tile of 8 rows |
//! | from 9 | `simd_gemm` | one tile of 32 rows reads the weights once, two tiles of 8 twice |
//!
//! The limits are the [`Thresholds`] of the chip; the table has those that are assumed of all.

use akunu_types::DType;

use crate::chip::Thresholds;
use crate::table::KernelId;

/// The kernel for `m` rows and `n` outputs with weights of a format.
pub fn product_kernel(dtype: DType, (m, n): (u32, u32), limits: &Thresholds) -> KernelId {
    match m {
        0..=1 if n < limits.wide_outputs => KernelId::Gemv(dtype),
        0..=1 => KernelId::GemvWide(dtype),
        m if m <= limits.batched_rows => KernelId::GemvBatched(dtype),
        m if m <= limits.small_tile_rows => KernelId::SimdGemmSmall(dtype),
        _ => KernelId::SimdGemm(dtype),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chip::ChipConfig;

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
        let limits = ChipConfig::m1().thresholds;
        for ((m, n), kernel) in table {
            assert_eq!(product_kernel(d, (m, n), &limits), kernel, "m {m}, n {n}");
        }
    }

    /// Breaks when a generation whose tiles are slow cannot have rows without them.
    #[test]
    fn a_chip_has_its_own_limits() {
        let limits = Thresholds {
            batched_rows: 16,
            ..ChipConfig::m1().thresholds
        };
        let kernel = product_kernel(DType::Q4_0, (16, 576), &limits);
        assert_eq!(kernel, KernelId::GemvBatched(DType::Q4_0));
    }
}
