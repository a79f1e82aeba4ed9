//! The matrices of experts: how they lie in one binding.

use akunu_kernels::KernelId;
use akunu_kernels::kernel::experts::Experts;
use akunu_kernels::weight::WeightLayout;
use akunu_program::{Storage, row_bytes};

/// Whether a kernel multiplies with the matrices of experts.
pub(super) fn is_of_experts(kernel: KernelId) -> bool {
    matches!(kernel, KernelId::ExpertGate(_) | KernelId::ExpertDown(_))
}

/// Where an expert's matrix of a stack begins, and its layout from there on.
pub(super) fn of_expert(
    experts: &Experts,
    stack: WeightLayout,
    expert: u32,
) -> (usize, WeightLayout) {
    let first_row = experts.row(expert as usize, 0);
    let before = first_row * row_bytes(stack.dtype, stack.cols);
    let rows = experts.params.N as usize;
    match stack.storage {
        Storage::Rows => (before, WeightLayout { rows, ..stack }),
        Storage::Mlx(mlx) => {
            let groups = stack.cols / mlx.group_len();
            let scales = (first_row * groups * mlx.scale_type.bytes()) as u32;
            let packed_at = mlx.packed_at + before as u32;
            let at = [packed_at, mlx.scales_at + scales, mlx.biases_at + scales];
            let storage = Storage::Mlx(mlx.at(at));
            let layout = WeightLayout {
                rows,
                storage,
                ..stack
            };
            (0, layout)
        }
    }
}
