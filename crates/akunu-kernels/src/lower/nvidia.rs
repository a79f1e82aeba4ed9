//! The rules of an NVIDIA GPU: kernels of its own for single rows, and products and attention on its tensor cores.

mod decode_attention;
mod halves;
pub mod select;

pub(super) use halves::{half_stride, halved_bytes};

use akunu_program::{Op, op};
use akunu_types::DType;

use super::lowering::{ExpertKernels, Lowering, ProductShape, Rules};
use crate::chip::ChipConfig;
use crate::kernel::attention::selection;
use crate::table::KernelId;

/// The kernels that suit the shapes and the chip, NVIDIA's own among them.
#[derive(Clone, Debug)]
pub struct NvidiaRules {
    chip: ChipConfig,
}

impl NvidiaRules {
    /// The rules of a chip.
    pub fn new(chip: &ChipConfig) -> NvidiaRules {
        NvidiaRules { chip: chip.clone() }
    }
}

impl Rules for NvidiaRules {
    fn fuse(&self, lowering: &mut Lowering, ops: &[Op]) -> Option<usize> {
        lowering
            .normed_products(ops, KernelId::DecodeNormGemv)
            .or_else(|| lowering.normed_output(ops, KernelId::DecodeNormGemv))
            .or_else(|| self.halved_result(lowering, ops))
            .or_else(|| self.decode_attention(lowering, ops))
            .or_else(|| {
                lowering.grouped_experts(ops, |dtype, routed| {
                    select::grouped_kernel(dtype, routed, &self.chip)
                })
            })
    }

    fn products(&self, lowering: &mut Lowering, products: &[&op::Product]) -> Option<usize> {
        self.products_together(lowering, products)
            .or_else(|| self.product_of_halves(lowering, products.first()?))
    }

    fn product_kernel(&self, shape: &ProductShape) -> KernelId {
        select::product_kernel(shape, &self.chip.thresholds)
    }

    fn expert_kernels(&self, dtype: DType) -> ExpertKernels {
        ExpertKernels {
            gate: KernelId::DecodeExpertGate(dtype),
            down: KernelId::DecodeExpertDown(dtype),
        }
    }

    fn attend(&self, lowering: &mut Lowering, attend: &op::Attend) {
        lowering.attend_by(attend, &self.chip, |shape| {
            let own = select::attention_kernel(shape, &self.chip);
            own.unwrap_or_else(|| selection::select(shape))
        });
    }
}
