//! Products with a weight, in whichever format it is.

use std::mem::offset_of;

use akunu_program::{GateFunction, Matrix, Op, Rows, Slice, op};
use akunu_types::params::{DecodeGemmParams, GEMMParams, HalfRowsParams, MLXParams, MatrixParams};

use super::normed::{is_overwritten, is_read_later};
use super::{Halved, Lowering};
use crate::constant::Constants;
use crate::kernel::convert::half_rows::Order;
use crate::kernel::matmul::select::{
    launch_kernel, n_parts, order_of_x, product_kernel, reads_halves, tensor_kernel,
};
use crate::kernel::nvidia::{decode_gemm, staging, tensor_gemm};
use crate::pipeline::PipelineKey;
use crate::plan::{KernelCall, RowField};
use crate::table::KernelId;
use crate::weight::mlx_constants;

/// How rows become halves.
struct Halving {
    rows: Rows,
    /// What the products that read them have as x.
    x: Slice,
    kernel: KernelId,
    inputs: Vec<Slice>,
    eps: f32,
}

impl Halving {
    fn plain(rows: Rows, x: Slice) -> Halving {
        Halving {
            rows,
            x,
            kernel: KernelId::HalfRows,
            inputs: vec![x],
            eps: 0.0,
        }
    }

    /// A norm or a gate, what it leaves in x, and its width.
    fn of(op: &Op) -> Option<(Halving, u32)> {
        match *op {
            Op::Norm(op::Norm {
                rows,
                x,
                weight,
                to,
                dim,
                eps,
            }) => Some((
                Halving {
                    rows,
                    x: to,
                    kernel: KernelId::NormHalfRows,
                    inputs: vec![x, weight],
                    eps,
                },
                dim,
            )),
            Op::Gate(op::Gate {
                activation,
                gate,
                up,
                to,
                width,
            }) => Some((
                Halving {
                    rows: Rows::All,
                    x: to,
                    kernel: match activation {
                        GateFunction::Silu => KernelId::SiluHalfRows,
                        GateFunction::Gelu => KernelId::GeluHalfRows,
                        GateFunction::GeluErf => return None,
                    },
                    inputs: vec![gate, up],
                    eps: 0.0,
                },
                width,
            )),
            _ => None,
        }
    }
}

fn as_product(op: &Op) -> Option<&op::Product> {
    match op {
        Op::Product(product) => Some(product),
        _ => None,
    }
}

impl Lowering<'_> {
    /// The product alone, without its bias.
    fn product(&mut self, product: &op::Product) {
        let &op::Product {
            rows,
            ref weight,
            x,
            to,
            ..
        } = product;
        let n_rows = self.program.room.of(rows.count());
        if self.halved.is_some_and(|halved| halved.x == to) {
            self.halved = None;
        }
        if let Some(chip) = self.chip
            && let Some(kernel) =
                tensor_kernel(weight.dtype, (n_rows, weight.rows, weight.cols), chip)
            && order_of_x(kernel) == Order::Rows
            && let Some([factors, halves]) = self.halve((rows, x), weight.cols, Order::Rows)
        {
            let bindings = vec![halves, weight.place, to, factors];
            return self.push_product(kernel, product, bindings);
        }
        let kernel = match self.chip {
            None => KernelId::Gemv(weight.dtype),
            Some(chip) => product_kernel(weight.dtype, (n_rows, weight.rows), x.offset, chip),
        };
        self.push_product(kernel, product, vec![x, weight.place, to]);
    }

    /// Lowers products of one vector that follow each other, q, k and v for example: their biases come after the last of
    /// them, so that nothing stands between the products; how many operations.
    pub(super) fn biased_products(&mut self, ops: &[Op]) -> Option<usize> {
        let first = as_product(ops.first()?)?;
        let is_like_the_first =
            |other: &&op::Product| (other.rows, other.x) == (first.rows, first.x);
        let products: Vec<&op::Product> = ops
            .iter()
            .map_while(as_product)
            .take_while(is_like_the_first)
            .collect();
        let mut rest = &products[..];
        while let Some((product, after)) = rest.split_first() {
            rest = match self.products_together(rest) {
                Some(n_together) => &rest[n_together..],
                None => {
                    self.product(product);
                    after
                }
            };
        }
        for product in &products {
            if let Some(bias) = product.bias {
                self.bias(product.rows, product.to, bias, product.weight.rows);
            }
        }
        Some(products.len())
    }

    /// Lowers a norm or a gate that only products on tensor cores read: it leaves halves for them, and no floats; how many
    /// operations.
    pub(super) fn halved_result(&mut self, ops: &[Op]) -> Option<usize> {
        let (how, width) = Halving::of(ops.first()?)?;
        let order = self.order_of_readers((how.rows, how.x), width, &ops[1..])?;
        self.halved = None;
        self.halve_by(&how, width, order).map(|_| 1)
    }

    /// The order in which the first of these operations read rows of x, if they are products on tensor cores, and if nothing reads x
    /// after them.
    pub(super) fn order_of_readers(
        &self,
        (rows, x): (Rows, Slice),
        width: u32,
        ops: &[Op],
    ) -> Option<Order> {
        let products: Vec<&op::Product> = ops
            .iter()
            .map_while(as_product)
            .take_while(|product| (product.rows, product.x) == (rows, x))
            .collect();
        let order = self.order_of_products(&products)?;
        let have_width = products.iter().all(|product| product.weight.cols == width);
        let rest = &ops[products.len()..];
        let is_last = match rows {
            Rows::All => is_overwritten(rest, x),
            Rows::Outputs => !is_read_later(rest, x),
        };
        (have_width && is_last).then_some(order)
    }

    /// The kernel on tensor cores of a product, if it gets one.
    fn tensor_kernel_of(&self, product: &op::Product) -> Option<KernelId> {
        let n_rows = self.program.room.of(product.rows.count());
        let shape = (n_rows, product.weight.rows, product.weight.cols);
        tensor_kernel(product.weight.dtype, shape, self.chip?)
    }

    /// The order in which all of these products, which follow each other, read x; those of one launch have the kernel of the first.
    fn order_of_products(&self, products: &[&op::Product]) -> Option<Order> {
        let order = order_of_x(self.tensor_kernel_of(products.first()?)?);
        let mut rest = products;
        while let Some(first) = rest.first() {
            if order_of_x(self.tensor_kernel_of(first)?) != order {
                return None;
            }
            let n_together = match order {
                Order::Rows => 1,
                Order::Spans | Order::Columns => n_together(rest),
            };
            rest = &rest[n_together..];
        }
        Some(order)
    }

    /// Lowers the first products of the same few rows as one kernel, as many as have weights of one format; how many.
    fn products_together(&mut self, products: &[&op::Product]) -> Option<usize> {
        let first = products.first()?;
        let n_rows = self.program.room.of(first.rows.count());
        let cols = first.weight.cols;
        let chip = self.chip?;
        let kernel = self.tensor_kernel_of(first)?;
        let order = order_of_x(kernel);
        if order == Order::Rows {
            return None;
        }
        let n_together = n_together(products);
        let together = &products[..n_together];
        if self
            .halved
            .is_some_and(|halved| together.iter().any(|product| halved.x == product.to))
        {
            self.halved = None;
        }
        let [factors, halves] = self.halve((first.rows, first.x), cols, order)?;
        // A weight that is not there has no rows: what is bound in its place is not touched.
        let product = |at: usize| together.get(at).unwrap_or(first);
        let outputs = |at: usize| together.get(at).map_or(0, |product| product.weight.rows);
        let mut params = DecodeGemmParams {
            M: n_rows,
            K: cols,
            lda: half_stride(cols, order),
            N0: outputs(0),
            N1: outputs(1),
            N2: outputs(2),
            beta: if first.add { 1.0 } else { 0.0 },
            n_parts: 1,
        };
        let kernel = launch_kernel(kernel, &params, chip);
        params.n_parts = n_parts(kernel, &params, chip);
        let row = kernel.row();
        let shared = if row.bindings.len() > decode_gemm::N_BINDINGS {
            Some(self.share(kernel, &mut params)?)
        } else {
            None
        };
        let mut bindings = vec![halves];
        bindings.extend((0..decode_gemm::MAX_WEIGHTS).map(|at| product(at).weight.place));
        bindings.extend((0..decode_gemm::MAX_WEIGHTS).map(|at| product(at).to));
        bindings.push(factors);
        bindings.extend(shared.into_iter().flatten());
        let field = RowField::new(offset_of!(DecodeGemmParams, M), first.rows.count());
        let key = PipelineKey::plain(kernel);
        self.push(KernelCall::new(key, &params, bindings, first.label).with_rows([field]));
        Some(n_together)
    }

    /// The places of the parts of a product and of their counters. Where there is no room for the counters, it has one part.
    fn share(&mut self, kernel: KernelId, params: &mut DecodeGemmParams) -> Option<[Slice; 2]> {
        let required = |params: &DecodeGemmParams| {
            let none = Constants::none();
            let row = kernel.row();
            let bytes = (row.required)(&row.args(bytemuck::bytes_of(params), &none));
            [
                bytes[decode_gemm::N_BINDINGS],
                bytes[decode_gemm::N_BINDINGS + 1],
            ]
        };
        if self.counters(required(params)[1]).is_none() {
            params.n_parts = 1;
        }
        let arrived = self.counters(0)?;
        let [part_bytes, _] = required(params);
        if part_bytes == 0 {
            // What is bound in the place of parts is not touched.
            return Some([arrived; 2]);
        }
        let [factors, halves] = halved_bytes(params.M, params.lda, order_of_x(kernel));
        let [.., parts] = self.scratch([factors, halves, part_bytes])?;
        Some([parts, arrived])
    }

    /// The rows of x in halves and their factors, in scratch memory: made now, or by a product before this one.
    fn halve(&mut self, (rows, x): (Rows, Slice), cols: u32, order: Order) -> Option<[Slice; 2]> {
        self.halve_by(&Halving::plain(rows, x), cols, order)
    }

    /// The same, where x is what a kernel computes and halves.
    fn halve_by(&mut self, how: &Halving, cols: u32, order: Order) -> Option<[Slice; 2]> {
        let &Halving { rows, x, .. } = how;
        let n_rows = self.program.room.of(rows.count());
        let stride = half_stride(cols, order);
        let places = self.scratch(halved_bytes(n_rows, stride, order))?;
        let [factors, halves] = places;
        let halved = Halved { rows, x, order };
        if self.halved.replace(halved) != Some(halved) {
            let params = HalfRowsParams {
                cols,
                stride,
                order: order.code(),
                eps: how.eps,
                ..Default::default()
            };
            let field = RowField::new(offset_of!(HalfRowsParams, rows), rows.count());
            let key = PipelineKey::plain(how.kernel);
            let bindings = [&how.inputs[..], &[halves, factors]].concat();
            self.push(KernelCall::new(key, &params, bindings, "to halves").with_rows([field]));
        }
        Some(places)
    }

    /// An activation and the product after it in one kernel, where a program has a single row and no other product reads
    /// the activation. Not on a GPU, where every threadgroup of the product would compute the activation again.
    pub(super) fn gated_product(&mut self, op: &Op, rest: &[Op]) -> bool {
        let Op::Gate(gate) = op else {
            return false;
        };
        let Some(product) = rest.first().and_then(as_product) else {
            return false;
        };
        let reads_it = (product.rows, product.x) == (Rows::All, gate.to) && product.bias.is_none();
        let is_alone = !is_read(&rest[1..], gate.to);
        if !reads_it || self.program.room.rows() != 1 || self.chip.is_some() || !is_alone {
            return false;
        }
        let dtype = product.weight.dtype;
        let kernel = match gate.activation {
            GateFunction::Silu => KernelId::GemvSilu(dtype),
            GateFunction::Gelu => KernelId::GemvGelu(dtype),
            GateFunction::GeluErf => return false,
        };
        let bindings = vec![gate.gate, gate.up, product.weight.place, product.to];
        self.push_product(kernel, product, bindings);
        true
    }

    fn push_product(&mut self, kernel: KernelId, product: &op::Product, bindings: Vec<Slice>) {
        let &op::Product {
            ref weight,
            add,
            label,
            ..
        } = product;
        let rows = product.rows.count();
        let beta = if add { 1.0 } else { 0.0 };
        let lda = if reads_halves(kernel) {
            half_stride(weight.cols, Order::Rows)
        } else {
            weight.cols
        };
        let call = if weight.dtype.is_mlx() {
            let key = PipelineKey {
                kernel,
                constants: mlx_constants(&weight.mlx),
            };
            let field = RowField::new(offset_of!(MLXParams, M), rows);
            let params = MLXParams {
                lda,
                ..mlx_params(weight, beta)
            };
            KernelCall::new(key, &params, bindings, label).with_rows([field])
        } else {
            let params = GEMMParams {
                N: weight.rows,
                K: weight.cols,
                lda,
                ldb: weight.cols,
                ldc: weight.rows,
                alpha: 1.0,
                beta,
                ..Default::default()
            };
            let field = RowField::new(offset_of!(GEMMParams, M), rows);
            KernelCall::new(PipelineKey::plain(kernel), &params, bindings, label).with_rows([field])
        };
        self.push(call);
    }

    pub(super) fn bias(&mut self, rows: Rows, to: Slice, bias: Slice, width: u32) {
        let params = MatrixParams {
            cols: width,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(MatrixParams, rows), rows.count());
        let key = PipelineKey::plain(KernelId::BiasAdd);
        self.push(KernelCall::new(key, &params, vec![to, bias], "bias").with_rows([field]));
    }
}

/// How many products from the first on one launch can have: those with weights of one format and length.
fn n_together(products: &[&op::Product]) -> usize {
    let alike = |product: &&op::Product| (product.weight.dtype, product.weight.cols, product.add);
    let first = products.first().map(alike);
    let same = products.iter().take(decode_gemm::MAX_WEIGHTS);
    same.take_while(|product| Some(alike(product)) == first)
        .count()
}

/// Whether a product reads this activation before the next activation takes its place.
fn is_read(ops: &[Op], activated: Slice) -> bool {
    let is_new = |op: &&Op| matches!(op, Op::Gate(gate) if gate.to == activated);
    let mut until = ops.iter().take_while(|op| !is_new(op));
    until.any(|op| matches!(op, Op::Product(product) if product.x == activated))
}

/// Bytes of the factors and of the halves of so many rows.
pub(super) fn halved_bytes(n_rows: u32, stride: u32, order: Order) -> [usize; 2] {
    let n_halved = order.rows(n_rows) as usize;
    [4 * n_rows as usize, 2 * n_halved * stride as usize]
}

/// Halves from one row to the next, zeros included.
pub(super) fn half_stride(cols: u32, order: Order) -> u32 {
    cols.next_multiple_of(match order {
        Order::Rows => tensor_gemm::STEP,
        Order::Spans | Order::Columns => staging::QUAD,
    })
}

pub(super) fn mlx_params(weight: &Matrix, beta: f32) -> MLXParams {
    let mlx = weight.mlx;
    MLXParams {
        N: weight.rows,
        K: weight.cols,
        group_size: mlx.group_size,
        packed_at: mlx.packed_at,
        scales_at: mlx.scales_at,
        biases_at: mlx.biases_at,
        scale_type: mlx.scale_type.code(),
        lda: weight.cols,
        ldc: weight.rows,
        alpha: 1.0,
        beta,
        ..Default::default()
    }
}
