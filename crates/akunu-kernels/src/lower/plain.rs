//! The specification: one kernel an operation.

use akunu_program::{GateFunction, Op, Rows, Slice, op};

use super::attention::Attention;
use super::lowering::{Lowering, ProductShape, Rules};
use crate::kernel::matmul::gemv_gated;
use crate::table::KernelId;

/// One kernel an operation, the same ones for any rows.
#[derive(Clone, Copy, Debug)]
pub struct PlainRules;

impl Rules for PlainRules {
    /// An activation and the product after it in one kernel, where a program has a single row and no other product reads
    /// the activation. Not on a GPU, where every threadgroup of the product would compute the activation again.
    fn fuse(&self, lowering: &mut Lowering, ops: &[Op]) -> Option<usize> {
        let [Op::Gate(gate), Op::Product(product), rest @ ..] = ops else {
            return None;
        };
        let reads_it = (product.rows, product.x) == (Rows::All, gate.to) && product.bias.is_none();
        let is_alone = !is_read(rest, gate.to);
        if !reads_it || lowering.program.room.rows() != 1 || !is_alone {
            return None;
        }
        let dtype = product.weight.dtype;
        let kernel = match gate.activation {
            GateFunction::Silu => KernelId::GemvSilu(dtype),
            GateFunction::Gelu => KernelId::GemvGelu(dtype),
            GateFunction::GeluErf | GateFunction::Sigmoid | GateFunction::SwigluOai => return None,
        };
        let buffers = gemv_gated::Buffers {
            gate: gate.gate,
            up: gate.up,
            weight: product.weight.place,
            y: product.to,
        };
        lowering.push_product((kernel, product.weight.cols), product, buffers);
        Some(2)
    }

    fn product_kernel(&self, shape: &ProductShape) -> KernelId {
        KernelId::Gemv(shape.dtype)
    }

    fn attend(&self, lowering: &mut Lowering, attend: &op::Attend) {
        let call = Attention::of(lowering, attend).by_rows();
        lowering.push(call);
    }
}

/// Whether a product reads this activation before the next activation takes its place.
fn is_read(ops: &[Op], activated: Slice) -> bool {
    let is_new = |op: &&Op| matches!(op, Op::Gate(gate) if gate.to == activated);
    let mut until = ops.iter().take_while(|op| !is_new(op));
    until.any(|op| matches!(op, Op::Product(product) if product.x == activated))
}
