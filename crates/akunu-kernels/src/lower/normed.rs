//! A norm and the products that read it as one kernel, for a single row on a GPU; and with them the gate of a feed-forward
//! network, or the gathering of the row.

use akunu_program::{GateFunction, Matrix, Op, Rows, Slice, op};
use akunu_types::DType;
use akunu_types::params::NormGemvParams;

use super::liveness::{is_overwritten, is_read_later};
use super::lowering::Lowering;
use crate::constant::{Constant, Constants};
use crate::kernel::fused::norm_gemv::{self, X_ALIGNMENT, with_layouts};
use crate::pipeline::PipelineKey;
use crate::plan::KernelCall;
use crate::table::KernelId;
use crate::weight::constants_of;

/// The kernel for weights of a format.
type NormGemv = fn(DType) -> KernelId;

/// Most weights of one kernel.
const MAX_PRODUCTS: usize = 3;

/// A product of the normalised row.
struct Normed<'a> {
    weight: &'a Matrix,
    to: Slice,
    bias: Option<Slice>,
    label: &'static str,
}

impl Lowering<'_> {
    /// Lowers a norm and the two or three products after it, if they are all that reads it; how many operations.
    pub(super) fn normed_products(&mut self, ops: &[Op], kernel: NormGemv) -> Option<usize> {
        let &Op::Norm(op::Norm {
            rows: Rows::All,
            x,
            weight: gain,
            to: normed,
            dim,
            eps,
        }) = ops.first()?
        else {
            return None;
        };
        if self.program.room.rows() != 1 || !can_be_staged([x, gain], dim) {
            return None;
        }
        let mut products: Vec<Normed> = ops[1..]
            .iter()
            .map_while(|op| product_of(op, Rows::All, normed))
            .collect();
        let first = products.first()?.weight;
        let is_alike = |product: &Normed| {
            let weight = product.weight;
            (weight.dtype, weight.cols) == (first.dtype, dim)
                && constants_of(weight.storage) == constants_of(first.storage)
        };
        let n_ops = 1 + products.len();
        if !(2..=MAX_PRODUCTS).contains(&products.len())
            || !products.iter().all(is_alike)
            || !is_overwritten(&ops[n_ops..], normed)
        {
            return None;
        }
        let constants = constants_of(first.storage);
        if let Some((gate, to)) = gate_of(&products, ops.get(n_ops)) {
            products[0].to = to;
            self.push_normed(
                kernel,
                [x, gain],
                &products,
                eps,
                constants.with_u32(Constant::Gate, gate),
            );
            return Some(n_ops + 1);
        }
        self.push_normed(kernel, [x, gain], &products, eps, constants);
        for product in products {
            if let Some(bias) = product.bias {
                self.bias(Rows::All, product.to, bias, product.weight.rows);
            }
        }
        Some(n_ops)
    }

    /// Lowers the gathering of the only row, its norm and the only product that reads it as one kernel; how many operations.
    pub(super) fn normed_output(&mut self, ops: &[Op], kernel: NormGemv) -> Option<usize> {
        let [gather, norm, product, rest @ ..] = ops else {
            return None;
        };
        let &Op::Gather(op::Gather {
            from, to: gathered, ..
        }) = gather
        else {
            return None;
        };
        let &Op::Norm(op::Norm {
            rows: Rows::Outputs,
            x,
            weight: gain,
            to: normed,
            dim,
            eps,
        }) = norm
        else {
            return None;
        };
        let product = product_of(product, Rows::Outputs, normed)?;
        let suits = (self.program.room.rows(), self.program.room.outputs) == (1, 1)
            && (x, product.weight.cols) == (gathered, dim)
            && product.bias.is_none();
        let are_read = is_read_later(rest, gathered) || is_read_later(rest, normed);
        if !suits || are_read || !can_be_staged([from, gain], dim) {
            return None;
        }
        let constants = constants_of(product.weight.storage);
        self.push_normed(kernel, [from, gain], &[product], eps, constants);
        Some(3)
    }

    fn push_normed(
        &mut self,
        kernel: NormGemv,
        [x, gain]: [Slice; 2],
        products: &[Normed],
        eps: f32,
        constants: Constants,
    ) {
        // A weight that is not there has no rows: what is bound in its place is not touched.
        let product = |at: usize| products.get(at).unwrap_or(&products[0]);
        let n_rows = |at: usize| products.get(at).map_or(0, |product| product.weight.rows);
        let weight = products[0].weight;
        let params = NormGemvParams {
            K: weight.cols,
            N0: n_rows(0),
            N1: n_rows(1),
            N2: n_rows(2),
            eps,
            ..Default::default()
        };
        let params = with_layouts(params, [0, 1, 2].map(|at| product(at).weight.storage.mlx()));
        let buffers = norm_gemv::Buffers {
            x,
            gain,
            weight_0: product(0).weight.place,
            weight_1: product(1).weight.place,
            weight_2: product(2).weight.place,
            y_0: product(0).to,
            y_1: product(1).to,
            y_2: product(2).to,
        };
        let key = PipelineKey {
            kernel: kernel(weight.dtype),
            constants,
        };
        self.push(KernelCall::new(key, &params, buffers, products[0].label));
    }
}

/// Whether kernels can read these vectors of `dim` values by four.
fn can_be_staged(vectors: [Slice; 2], dim: u32) -> bool {
    let is_aligned = |slice: &Slice| slice.offset.is_multiple_of(X_ALIGNMENT);
    vectors.iter().all(is_aligned) && dim.is_multiple_of(4)
}

/// The constant of the gate that `op` applies to two products, and where its result goes.
fn gate_of(products: &[Normed], op: Option<&Op>) -> Option<(u32, Slice)> {
    let ([first, second], Op::Gate(gate)) = (products, op?) else {
        return None;
    };
    let are_its =
        (gate.gate, gate.up) == (first.to, second.to) && first.weight.rows == second.weight.rows;
    if !are_its || first.bias.is_some() || second.bias.is_some() {
        return None;
    }
    let constant = match gate.activation {
        GateFunction::Silu => norm_gemv::SILU,
        GateFunction::Gelu => norm_gemv::GELU,
        GateFunction::GeluErf | GateFunction::Sigmoid | GateFunction::SwigluOai => return None,
    };
    Some((constant, gate.to))
}

/// The product that `op` is, if it is one of these rows and overwrites its result.
fn product_of(op: &Op, of: Rows, normed: Slice) -> Option<Normed<'_>> {
    match op {
        Op::Product(product) if (product.rows, product.x) == (of, normed) && !product.add => {
            Some(Normed {
                weight: &product.weight,
                to: product.to,
                bias: product.bias,
                label: product.label,
            })
        }
        _ => None,
    }
}
