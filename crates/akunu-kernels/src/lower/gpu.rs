//! The rules of a GPU.

use akunu_program::{Op, op};

use super::lowering::{Lowering, ProductShape, Rules};
use crate::chip::ChipConfig;
use crate::kernel::attention::selection;
use crate::kernel::experts::select::grouped_kernel;
use crate::kernel::matmul::select::product_kernel;
use crate::table::KernelId;

/// The kernels that suit the shapes and the chip, of those that every GPU runs.
#[derive(Clone, Debug)]
pub struct GpuRules {
    chip: ChipConfig,
}

impl GpuRules {
    /// The rules of a chip.
    pub fn new(chip: &ChipConfig) -> GpuRules {
        GpuRules { chip: chip.clone() }
    }
}

impl Rules for GpuRules {
    fn fuse(&self, lowering: &mut Lowering, ops: &[Op]) -> Option<usize> {
        lowering
            .normed_products(ops, KernelId::NormGemv)
            .or_else(|| lowering.grouped_experts(ops, grouped_kernel))
    }

    fn product_kernel(&self, shape: &ProductShape) -> KernelId {
        let size = (shape.rows, shape.outputs);
        product_kernel(shape.dtype, size, &self.chip.thresholds)
    }

    fn attend(&self, lowering: &mut Lowering, attend: &op::Attend) {
        lowering.attend_by(attend, &self.chip, selection::select);
    }
}
