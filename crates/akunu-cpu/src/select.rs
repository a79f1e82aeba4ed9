//! Which function runs a kernel of the table: a pure function of the kernel and the instructions.

use akunu_kernels::KernelId;

use crate::call::Kernel;
use crate::isa::Isa;
use crate::kernel::norm;
use crate::simd::kernel as simd;
use crate::{matmul, twin};

/// The kernel to run; the twin where there is no fast one.
pub(crate) fn select(kernel: KernelId, isa: Isa) -> Kernel {
    match kernel {
        KernelId::HeadRmsNorm => simd::<norm::HeadRmsNorm>(isa),
        KernelId::ResidualRmsNorm => simd::<norm::ResidualRmsNorm>(isa),
        KernelId::RmsNorm => simd::<norm::RmsNorm>(isa),
        KernelId::RmsNormResidual => simd::<norm::RmsNormResidual>(isa),
        _ => matmul::select(kernel, isa).unwrap_or(twin::run),
    }
}
