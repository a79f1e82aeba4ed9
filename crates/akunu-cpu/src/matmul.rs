//! The matrix products, and the weights as they read them.
//!
//! Quantised weights are rearranged into panels of sixteen rows ([`crate::panels`]) when a plan is loaded ([`prepare`]).
//! A product with a few vectors reads them from front to back ([`gemv`]). With more of them, a prompt, weights are made into
//! what is multiplied faster ([`gemm`]): tiles, bytes, 16-bit integers or f32. Floating-point weights are read as the file has
//! them ([`float_gemv`]), or become the same for a prompt.
//!
//! The README has a table of which file multiplies, by weights, rows and processor.

mod activation;
pub(crate) mod batch;
mod expert_stack;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod experts;
mod float_gemv;
mod gemv;
pub(crate) mod in_file;
pub(crate) mod prepare;
mod product;
mod vectors;
mod weight;

#[cfg(target_arch = "aarch64")]
mod arm;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod blocked_gemm;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod gemm;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod shape;
#[cfg(target_arch = "x86_64")]
mod x86;

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
        KernelId::GemvSilu(_) => Some(simd::<product::Gated<Silu>>),
        KernelId::GemvGelu(_) => Some(simd::<product::Gated<Gelu>>),
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        KernelId::ExpertGate(_) => Some(experts::gate_and_up),
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        KernelId::ExpertDown(_) => Some(experts::down),
        _ => None,
    }
}
