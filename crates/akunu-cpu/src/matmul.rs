//! The matrix products, and the weights as they read them.
//!
//! Quantised weights are rearranged when a plan is prepared: into panels of sixteen rows ([`crate::panels`]), which decoding
//! reads from front to back ([`dots`]) and which become tiles ([`gemm`]), bytes ([`bytes`]) or 16-bit integers ([`pairs`]) for
//! the products of a prompt. Floating-point weights are read as they are ([`rows`]), and become tiles ([`float_gemm`]), 16-bit integers
//! ([`half_pairs`]) or columns of f32 ([`columns`]) for a prompt.

mod activation;
pub(crate) mod batch;
mod dots;
mod prepare;
mod product;
mod rows;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod shape;
mod weight;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod blocked;
#[cfg(target_arch = "x86_64")]
mod bytes;
#[cfg(target_arch = "x86_64")]
mod cells256;
#[cfg(target_arch = "x86_64")]
mod cells512;
#[cfg(target_arch = "x86_64")]
mod columns;
#[cfg(target_arch = "x86_64")]
mod expand;
#[cfg(target_arch = "x86_64")]
mod float_gemm;
#[cfg(target_arch = "x86_64")]
mod gemm;
#[cfg(target_arch = "x86_64")]
mod half_pairs;
#[cfg(target_arch = "x86_64")]
mod kind;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod outputs;
#[cfg(target_arch = "x86_64")]
mod pairs;
#[cfg(target_arch = "x86_64")]
mod pairs256;
#[cfg(target_arch = "x86_64")]
mod pairs512;
#[cfg(target_arch = "x86_64")]
mod scaled256;
#[cfg(target_arch = "x86_64")]
mod scaled512;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod tiled;
#[cfg(target_arch = "x86_64")]
mod unscaled_tiles;
#[cfg(target_arch = "x86_64")]
mod wide;
#[cfg(target_arch = "x86_64")]
mod words;

use akunu_kernels::KernelId;

use crate::body::kernel as simd;
use crate::call::Kernel;
use crate::isa::Isa;
use crate::kernel::elementwise::{Gelu, Silu};

/// The fast form of a product, where there is one.
pub(crate) fn select(kernel: KernelId, isa: Isa) -> Option<Kernel> {
    if isa == Isa::Scalar {
        return None;
    }
    match kernel {
        KernelId::Gemv(_)
        | KernelId::GemvWide(_)
        | KernelId::GemvBatched(_)
        | KernelId::SimdGemm(_)
        | KernelId::SimdGemmSmall(_) => Some(product::product),
        KernelId::GemvSilu(_) => Some(simd::<product::Gated<Silu>>(isa)),
        KernelId::GemvGelu(_) => Some(simd::<product::Gated<Gelu>>(isa)),
        _ => None,
    }
}
