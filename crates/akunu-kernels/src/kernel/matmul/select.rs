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
//! The limits follow from the bytes each kernel moves; they are to be measured on a Mac.

use akunu_types::DType;

use crate::table::KernelId;

/// Outputs from which `gemv_wide` is used: vocabularies, not hidden layers.
const WIDE_N: u32 = 32_768;
/// Most rows for `gemv_batched`.
const BATCHED_M: u32 = 4;
/// Most rows for `simd_gemm_small`: one tile.
const SMALL_M: u32 = 8;

/// The kernel for `m` rows and `n` outputs with weights of a format.
pub fn product_kernel(dtype: DType, (m, n): (u32, u32)) -> KernelId {
    match m {
        0..=1 if n < WIDE_N => KernelId::Gemv(dtype),
        0..=1 => KernelId::GemvWide(dtype),
        2..=BATCHED_M => KernelId::GemvBatched(dtype),
        m if m <= SMALL_M => KernelId::SimdGemmSmall(dtype),
        _ => KernelId::SimdGemm(dtype),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(product_kernel(d, (m, n)), kernel, "m {m}, n {n}");
        }
    }
}
