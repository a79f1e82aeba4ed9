//! Which function runs a kernel of the table: a pure function of the kernel and the instructions.

use akunu_kernels::KernelId;

use crate::call::Kernel;
use crate::isa::Isa;
use crate::{matmul, twin};

/// The kernel to run; the twin where there is no fast one.
pub(crate) fn select(kernel: KernelId, isa: Isa) -> Kernel {
    matmul::select(kernel, isa).unwrap_or(twin::run)
}
